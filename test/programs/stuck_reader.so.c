/* Is preloaded in front of the profiler: a recv() of the helper's sets reader_is_stuck, and returns
 * only once the process has forked as often as STUCK_FORKS says (unset: never). longest_wait_ms is
 * the longest timeout that the main thread has requested for one futex wait. */
#define _GNU_SOURCE
#include "bare_call.h"

#include "../../common/helper_name.h"

#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

extern _Atomic int reader_is_stuck;
extern _Atomic long longest_wait_ms;
_Atomic int reader_is_stuck;
_Atomic long longest_wait_ms;
static _Atomic int forks_to_come;

static void count_fork(void) {
    atomic_fetch_sub(&forks_to_come, 1);
}

static __attribute__((constructor)) void begin(void) {
    const char *const forks = getenv("STUCK_FORKS");
    forks_to_come = forks ? atoi(forks) : INT_MAX;
    pthread_atfork(NULL, count_fork, NULL);
}

ssize_t recv(int descriptor, void *bytes, size_t size, int flags) {
    char name[16] = "";
    prctl(PR_GET_NAME, name);
    if (helper_name_is(name)) {
        atomic_store(&reader_is_stuck, 1);
        while (atomic_load(&forks_to_come) > 0)
            nanosleep(&(struct timespec){0, 1000000}, NULL);
    }
    return bare_call(SYS_recvfrom, descriptor, (long)bytes, (long)size, flags, 0, 0);
}

static void note_wait(long operation, const struct timespec *until) {
    struct timespec now;
    if ((operation & FUTEX_CMD_MASK) != FUTEX_WAIT_BITSET || !until || gettid() != getpid())
        return;
    clock_gettime(CLOCK_MONOTONIC, &now);
    const long wait =
        (until->tv_sec - now.tv_sec) * 1000 + (until->tv_nsec - now.tv_nsec) / 1000000;
    if (wait > atomic_load(&longest_wait_ms))
        atomic_store(&longest_wait_ms, wait);
}

long syscall(long number, ...) {
    va_list list;
    long argument[6];
    va_start(list, number);
    for (int i = 0; i < 6; i++)
        argument[i] = va_arg(list, long);
    va_end(list);
    if (number == SYS_futex)
        note_wait(argument[1], (const struct timespec *)argument[3]);
    return bare_syscall_of(number, argument);
}
