// Has threads of several kinds. usage: thread_kinds KIND [COUNT]. KIND: one of those in main().
// COUNT: how often "exec" executes this program again.
#include "awaits_export.h"
#include "cpu_sample.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <pthread.h>
#include <string>
#include <sys/prctl.h>
#include <threads.h>
#include <unistd.h>
#include <vector>

extern "C" __attribute__((weak)) void early_join(void); // defined by early_thread.so

// --- destructors that run after the start routine ---

SAMPLED_BURNER(burn_in_local_destructor, 30)
SAMPLED_BURNER(burn_in_key_destructor, 30)

NOIPA static void allocate_in_destructor() {
    for (int i = 0; i < 64; i++) {
        void *volatile block = std::malloc(1 << 20);
        std::free(block);
    }
}

struct at_end {
    bool used = false;
    ~at_end() {
        burn_in_local_destructor();
        allocate_in_destructor();
    }
};

static thread_local at_end local;
static pthread_key_t key;

static void on_key(void *) {
    burn_in_key_destructor();
}

static void *destructor_thread(void *) {
    local.used = true;
    pthread_setspecific(key, &key);
    return nullptr;
}

static void destructors() {
    pthread_t thread;
    pthread_key_create(&key, on_key);
    pthread_create(&thread, nullptr, destructor_thread, nullptr);
    pthread_join(thread, nullptr);
}

// --- a thread that began before the profiler ---

static void early() {
    if (early_join)
        early_join();
}

// --- C11 ---

SAMPLED_BURNER(burn_c11, 30)

static int c11_thread(void *argument) {
    burn_c11();
    if (argument)
        thrd_exit(-7);
    return 42;
}

static void c11() {
    thrd_t thread;
    int result;
    for (int leave = 0; leave < 2; leave++) {
        thrd_create(&thread, c11_thread, leave ? &thread : nullptr);
        thrd_join(thread, &result);
        std::printf("%d\n", result);
    }
}

// --- names ---

static void names() {
    for (const char *name : {"first name", "second name", "third name"}) {
        prctl(PR_SET_NAME, name);
        WORK_FOR(10 * NS_PER_MS);
        TAKE_CPU_SAMPLE();
        await_export();
    }
}

// --- ten thousand at once ---

enum { CROWD = 10000 };
static pthread_barrier_t all_there;

NOIPA static void burn_in_crowd() {
    WORK_FOR(200 * NS_PER_US);
}

static void *crowd_thread(void *) {
    pthread_barrier_wait(&all_there);
    burn_in_crowd();
    pthread_barrier_wait(&all_there);
    return nullptr;
}

static void crowd() {
    std::vector<pthread_t> threads(CROWD);
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 64 << 10);
    pthread_barrier_init(&all_there, nullptr, CROWD + 1);
    for (pthread_t &thread : threads)
        if (pthread_create(&thread, &small, crowd_thread, nullptr) != 0)
            std::exit(3);
    pthread_barrier_wait(&all_there);
    pthread_barrier_wait(&all_there);
    for (pthread_t thread : threads)
        pthread_join(thread, nullptr);
    std::printf("%llu\n", static_cast<unsigned long long>(clock_ns(CLOCK_PROCESS_CPUTIME_ID)));
}

// --- exec out of one of several busy threads ---

static void *busy_thread(void *) {
    WORK_FOR(10000 * NS_PER_MS);
    return nullptr;
}

static void *exec_thread(void *count) {
    WORK_FOR(20 * NS_PER_MS);
    const std::string left = std::to_string(std::atoi(static_cast<const char *>(count)) - 1);
    execl("/proc/self/exe", "thread_kinds", "exec", left.c_str(), nullptr);
    return nullptr;
}

static void exec(char *count) {
    pthread_t thread;
    if (std::atoi(count) <= 0)
        return;
    for (int i = 0; i < 3; i++)
        pthread_create(&thread, nullptr, busy_thread, nullptr);
    pthread_create(&thread, nullptr, exec_thread, count);
    pthread_join(thread, nullptr);
}

int main(int argc, char **argv) {
    const std::string kind = argc > 1 ? argv[1] : "";
    if (kind == "destructors")
        destructors();
    else if (kind == "early")
        early();
    else if (kind == "c11")
        c11();
    else if (kind == "names")
        names();
    else if (kind == "crowd")
        crowd();
    else if (kind == "exec")
        exec(argv[2]);
    else
        return 2;
    std::puts("done");
    return 0;
}
