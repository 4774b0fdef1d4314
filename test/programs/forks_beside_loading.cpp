/* Has two threads that load and unload libraries, two that allocate, two that throw, one that
 * creates threads; and the main thread forks children that allocate and `_exit`. Prints how many
 * children ended as they should. */
#include "cpu_work.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>

static std::atomic<bool> ended;

static void *loads(void *name) {
    while (!ended)
        if (void *const library = dlopen(static_cast<const char *>(name), RTLD_NOW))
            dlclose(library);
    return nullptr;
}

static void allocate() {
    char *const volatile block = static_cast<char *>(malloc(50000));
    memset(block, 1, 50000);
    free(block);
}

static void *allocates(void *unused) {
    while (!ended)
        allocate();
    return unused;
}

static void *throws(void *unused) {
    while (!ended) {
        try {
            throw 1;
        } catch (int) {
        }
    }
    return unused;
}

static void *returns(void *unused) {
    return unused;
}

static void *creates(void *unused) {
    pthread_t id;
    while (!ended)
        if (pthread_create(&id, nullptr, returns, nullptr) == 0)
            pthread_join(id, nullptr);
    return unused;
}

static bool child_ends_well() {
    const pid_t child = fork();
    if (child == 0) {
        alarm(60);
        for (const uint64_t end = cpu_now() + 20 * NS_PER_MS; cpu_now() < end;)
            allocate();
        _exit(3);
    }
    int status = 0;
    return waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 3;
}

int main(int argc, char **argv) {
    static char z[] = "libz.so.1";
    static char m[] = "libexpat.so.1";
    void *(*const routines[])(void *) = {loads,  loads,  allocates, allocates,
                                         throws, throws, creates};
    void *const arguments[] = {z, m, nullptr, nullptr, nullptr, nullptr, nullptr};
    int fine = 0;
    for (int i = 0; i < 7; i++) {
        pthread_t id;
        if (pthread_create(&id, nullptr, routines[i], arguments[i]) != 0)
            return 1;
    }
    for (int i = argc > 1 ? atoi(argv[1]) : 0; i > 0; i--)
        fine += child_ends_well();
    printf("%d\n", fine);
    fflush(stdout);
    _exit(0);
}
