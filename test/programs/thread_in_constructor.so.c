/* Is preloaded in front of the profiler: an allocator whose constructor creates a thread under its
 * lock, and joins it (heaptrack). The thread needs the loader, and the loader needs the allocator.
 *
 * The profiler's helper runs when this constructor begins. The constructor waits until the helper
 * is in the loader, where its first malloc waits until the lock is taken. Then nothing goes on, and
 * SIGALRM ends the process. Or the constructor sees that the helper sleeps outside of the loader,
 * as it is meant to. After a bound the helper no longer waits for main
 * (helper_constructors_are_over). On a machine so busy that this constructor exceeds the bound, the
 * helper waits for the constructor in the dlopen() below.
 */
#define _GNU_SOURCE
#include "../../common/helper_name.h"

#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

enum {
    HANGS_S = 60,     /* after which the test has failed */
    ROUNDS = 3000,    /* of a hundredth of a second, for a helper that does not begin to run */
    SOON_CPU_MS = 40, /* less than the helper's wait for main */
    SOON_MS = 4000,
};

void *__libc_malloc(size_t size);
void *dlopen(const char *path, int flags);

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic bool helper_is_in_loader;
static _Atomic bool is_locked; /* set by the constructor */
static _Atomic bool is_over;   /* set by the constructor */
static __thread bool loads;    /* set by the helper: it is in dlopen() */
static __thread bool inside;   /* inside of code that takes no lock */

static void pause_ms(long ms) {
    nanosleep(&(struct timespec){0, ms * 1000000}, NULL);
}

static bool is_helper(void) {
    char name[16] = "";
    prctl(PR_GET_NAME, name);
    return helper_name_is(name);
}

/* Reads a file; "" if it cannot be read. */
static void read_file(const char *path, char *text, size_t bytes) {
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t size = file < 0 ? 0 : read(file, text, bytes - 1);
    if (file >= 0)
        close(file);
    text[size > 0 ? size : 0] = 0;
}

static long milliseconds(clockid_t clock) {
    struct timespec time;
    clock_gettime(clock, &time);
    return time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

/* Returns the process's age: the 22nd word of /proc/self/stat is the time of its start, in
 * hundredths of a second. */
static long age_ms(void) {
    char text[1024];
    read_file("/proc/self/stat", text, sizeof text);
    const char *at = strrchr(text, ')');
    for (int word = 2; at && word < 22; word++)
        at = strchr(at + 1, ' ');
    return at ? milliseconds(CLOCK_BOOTTIME) - atol(at) * 10 : 0;
}

void *dlopen(const char *path, int flags) {
    void *(*next)(const char *, int);
    void *const found = dlsym(RTLD_NEXT, "dlopen");
    memcpy(&next, &found, sizeof next);
    loads = is_helper();
    while (loads && !is_over &&
           (milliseconds(CLOCK_PROCESS_CPUTIME_ID) >= SOON_CPU_MS || age_ms() >= SOON_MS))
        pause_ms(10);
    void *const library = next(path, flags);
    loads = false;
    return library;
}

void *malloc(size_t size) {
    if (loads && !is_over) {
        helper_is_in_loader = true;
        while (!is_locked)
            sched_yield();
    }
    if (!inside) {
        pthread_mutex_lock(&lock);
        pthread_mutex_unlock(&lock);
    }
    return __libc_malloc(size);
}

static void *ask_loader(void *unused) {
    inside = true;
    (void)dlsym(RTLD_DEFAULT, "malloc");
    return unused;
}

static bool helper_sleeps(void) {
    bool sleeps = false;
    DIR *const threads = opendir("/proc/self/task");
    for (const struct dirent *entry; threads && (entry = readdir(threads));) {
        char path[320];
        char text[1024];
        snprintf(path, sizeof path, "/proc/self/task/%s/stat", entry->d_name);
        read_file(path, text, sizeof text);
        char *const name = strchr(text, '(');
        char *const end = strrchr(text, ')');
        if (!name || !end)
            continue;
        *end = 0;
        sleeps |= helper_name_is(name + 1) && end[2] == 'S';
    }
    if (threads)
        closedir(threads);
    return sleeps;
}

__attribute__((constructor)) static void construct(void) {
    pthread_t id;
    alarm(HANGS_S);
    inside = true;
    for (int i = 0; i < ROUNDS && !helper_is_in_loader && !helper_sleeps(); i++)
        pause_ms(10);
    pthread_mutex_lock(&lock);
    is_locked = true;
    if (pthread_create(&id, NULL, ask_loader, NULL) == 0)
        pthread_join(id, NULL);
    is_over = true;
    pthread_mutex_unlock(&lock);
    inside = false;
    alarm(0);
}
