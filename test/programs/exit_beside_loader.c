/* Has a signal handler and one thread, and ends while the profiler's helper is inside of
 * dl_iterate_phdr(), and so holds the loader's lock. The helper leaves the lock once the main
 * thread sleeps, in its wait for the helper. The program's destructor takes the same lock. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

typedef int callback(struct dl_phdr_info *info, size_t size, void *data);

struct visit {
    callback *visit;
    void *data;
};

enum { TEXT_BYTES = 256 };

static _Atomic int is_inside; /* set by the helper, read by the main thread */
static _Atomic int ends;      /* set by the main thread, read by the helper */

static int main_sleeps(void) {
    char path[64];
    char text[TEXT_BYTES] = "";
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", getpid());
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t length = read(file, text, sizeof text - 1);
    close(file);
    const char *const name_end = length > 0 ? strrchr(text, ')') : NULL;
    return name_end && name_end[2] == 'S';
}

static int visit_first(struct dl_phdr_info *info, size_t size, void *data) {
    const struct visit *const visit = data;
    if (atomic_load(&is_inside) == 0) {
        atomic_store(&is_inside, 1);
        while (!atomic_load(&ends) || !main_sleeps())
            usleep(1000);
    }
    return visit->visit(info, size, visit->data);
}

/* Precedes libc's function, for all loaded objects; on the helper it stays inside. */
__attribute__((visibility("default"))) int dl_iterate_phdr(callback *visit, void *data) {
    static int (*real)(callback * visit, void *data);
    struct visit with = {visit, data};
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "dl_iterate_phdr");
    return syscall(SYS_gettid) == getpid() ? real(visit, data) : real(visit_first, &with);
}

static int ignore(struct dl_phdr_info *info, size_t size, void *data) {
    (void)info, (void)size, (void)data;
    return 1;
}

__attribute__((destructor)) static void look_at_objects(void) {
    dl_iterate_phdr(ignore, NULL);
}

static void handle(int number) {
    (void)number;
}

int main(void) {
    signal(SIGUSR1, handle);
    while (!atomic_load(&is_inside))
        usleep(1000);
    atomic_store(&ends, 1);
    exit(3);
}
