/* The functions behind ours: what the program would have called without us.
 *
 * Resolved once (next_symbol.h) by a look-up which respects every other preload. The allocator's
 * are in allocation_path.h.
 */
#ifndef OTELPROF_NEXT_H
#define OTELPROF_NEXT_H

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/time.h>
#include <threads.h>

/* libc's syscall() as it is called: six arguments in registers, whatever the call has. */
typedef long syscall_function(long number, long a, long b, long c, long d, long e, long f);

struct next_calls {
    int (*pthread_create)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    int (*thrd_create)(thrd_t *, thrd_start_t, void *);
    int (*dlclose)(void *);
    int (*sigaction)(int, const struct sigaction *, struct sigaction *);
    sighandler_t (*signal)(int, sighandler_t);
    sighandler_t (*sysv_signal)(int, sighandler_t);
    sighandler_t (*sigset)(int, sighandler_t);
    int (*sigignore)(int);
    int (*siginterrupt)(int, int);
    int (*sigwaitinfo)(const sigset_t *, siginfo_t *);
    int (*sigtimedwait)(const sigset_t *, siginfo_t *, const struct timespec *);
    int (*signalfd)(int, const sigset_t *, int);
    int (*sigaltstack)(const stack_t *, stack_t *);
    int (*unshare)(int);
    int (*chroot)(const char *);
    int (*setns)(int, int);
    int (*setitimer)(int, const struct itimerval *, struct itimerval *);
    char *(*getenv)(const char *);
    char *(*secure_getenv)(const char *);
    syscall_function *syscall;
    int (*clone)(int (*)(void *), void *, int, void *, void *, void *, void *);
    pid_t (*fork)(void);
    void (*exit)(int);
};

/* The calls, resolved by whoever comes first: the constructor where the process is profiled, the
 * first hook that is called elsewhere. Context: any. Async-signal-safe: yes. */
const struct next_calls *next_calls(void);

/* As next_calls(), for dlclose and what creates threads: glibc before 2.34 has them in libraries
 * that may have come since, and they are looked for again where they were not found. */
const struct next_calls *next_library_calls(void);

/* sigaction() as the C library has it. Async-signal-safe: yes. */
static inline int next_sigaction(int number, const struct sigaction *action,
                                 struct sigaction *old) {
    return next_calls()->sigaction(number, action, old);
}

#endif
