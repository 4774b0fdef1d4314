/* Hooks waits that have a signal mask of their own: sigsuspend, sigpause, ppoll, pselect,
 * epoll_pwait, epoll_pwait2. The kernel restores the thread's mask before a handler begins, so the
 * signal's frame does not show the mask of the wait, which program_handlers.c needs. So each hook
 * notes the mask's address in the thread's signal stack (profiler_signal_stacks.h), and forwards
 * the call. */
#include "bare_syscall.h"
#include "capture/capture.h"
#include "capture/kernel/signals_blocked.h"
#include "capture/record/profiler_signal_stacks.h"
#include "capture/symbols/next_symbol.h"
#include "entry.h"

#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/syscall.h>

#ifndef SYS_epoll_pwait2
#define SYS_epoll_pwait2 441 /* Linux 5.11 */
#endif

/* Holds the next definitions of these functions. */
static struct {
    _Atomic(void *) sigsuspend;
    _Atomic(void *) sigpause;
    _Atomic(void *) __xpg_sigpause;
    _Atomic(void *) ppoll;
    _Atomic(void *) __ppoll_chk;
    _Atomic(void *) pselect;
    _Atomic(void *) epoll_pwait;
    _Atomic(void *) epoll_pwait2;
} next_waits;

/* Calls `next` while the mask is noted. A handler that jumps out of the wait leaves the note
 * behind; therefore read_wait_mask() checks that the hook's frame still exists. */
#define WAIT_BY(next, mask, arguments)                                                             \
    __extension__({                                                                                \
        struct profiler_signal_stack *const own = profiler_tls.signal_stack;                       \
        if (own)                                                                                   \
            profiler_signal_stack_note_wait(own, (uintptr_t)__builtin_frame_address(0),            \
                                            (uintptr_t)__builtin_return_address(0), mask);         \
        const int result = next arguments;                                                         \
        if (own)                                                                                   \
            profiler_signal_stack_note_wait(own, 0, 0, NULL);                                      \
        result;                                                                                    \
    })

/* Calls the next definition of the function. */
#define WAIT(name, type, mask, arguments)                                                          \
    __extension__({                                                                                \
        type *const next = (type *)next_symbol_once(&next_waits.name, #name);                      \
        WAIT_BY(next, mask, arguments);                                                            \
    })

HOOK int sigsuspend(const sigset_t *mask) {
    typedef int function(const sigset_t *);
    return WAIT(sigsuspend, function, mask, (mask));
}

static sigset_t sigset_of(signal_mask mask) {
    sigset_t set;
    memset(&set, 0, sizeof set);
    memcpy(&set, &mask, sizeof mask);
    return set;
}

/* Implements BSD's sigpause(), whose argument is a mask. Declared here because libc's header
 * declares the X/Open function under that name. */
HOOK int hook_sigpause(int mask) __asm__("sigpause");

int hook_sigpause(int mask) {
    typedef int function(int);
    const sigset_t set = sigset_of((unsigned)mask);
    return WAIT(sigpause, function, &set, (mask));
}

/* Implements POSIX's sigpause(): waits with the present mask without that signal. */
HOOK int __xpg_sigpause(int number);

int __xpg_sigpause(int number) {
    typedef int function(int);
    signal_mask mask = 0;
    (void)signals_change(SIG_BLOCK, NULL, &mask);
    if (number > 0 && number <= 64)
        mask &= ~signal_bit(number);
    const sigset_t set = sigset_of(mask);
    return WAIT(__xpg_sigpause, function, &set, (number));
}

/* Hooks ppoll(). Defined under another name, because with _FORTIFY_SOURCE libc's header defines
 * ppoll() in C. */
HOOK int hook_ppoll(struct pollfd *files, nfds_t count, const struct timespec *timeout,
                    const sigset_t *mask) __asm__("ppoll");

int hook_ppoll(struct pollfd *files, nfds_t count, const struct timespec *timeout,
               const sigset_t *mask) {
    typedef int function(struct pollfd *, nfds_t, const struct timespec *, const sigset_t *);
    return WAIT(ppoll, function, mask, (files, count, timeout, mask));
}

/* Implements ppoll() of programs that are built with _FORTIFY_SOURCE. */
HOOK int __ppoll_chk(struct pollfd *files, nfds_t count, const struct timespec *timeout,
                     const sigset_t *mask, size_t room);

int __ppoll_chk(struct pollfd *files, nfds_t count, const struct timespec *timeout,
                const sigset_t *mask, size_t room) {
    typedef int function(struct pollfd *, nfds_t, const struct timespec *, const sigset_t *,
                         size_t);
    return WAIT(__ppoll_chk, function, mask, (files, count, timeout, mask, room));
}

HOOK int pselect(int count, fd_set *restrict in, fd_set *restrict out, fd_set *restrict failed,
                 const struct timespec *restrict timeout, const sigset_t *restrict mask) {
    typedef int function(int, fd_set *, fd_set *, fd_set *, const struct timespec *,
                         const sigset_t *);
    return WAIT(pselect, function, mask, (count, in, out, failed, timeout, mask));
}

HOOK int epoll_pwait(int descriptor, struct epoll_event *events, int count, int timeout,
                     const sigset_t *mask) {
    typedef int function(int, struct epoll_event *, int, int, const sigset_t *);
    return WAIT(epoll_pwait, function, mask, (descriptor, events, count, timeout, mask));
}

typedef int timed_epoll(int, struct epoll_event *, int, const struct timespec *, const sigset_t *);

/* Implements epoll_pwait2() for a libc that lacks it: before glibc 2.35. */
static int epoll_by_number(int descriptor, struct epoll_event *events, int count,
                           const struct timespec *timeout, const sigset_t *mask) {
    return (int)bare_syscall(SYS_epoll_pwait2, descriptor, (long)events, count, (long)timeout,
                             (long)mask, sizeof(signal_mask));
}

/* Hooks epoll_pwait2(). Newer headers declare the function, older headers do not. */
HOOK timed_epoll hook_epoll_pwait2 __asm__("epoll_pwait2");

int hook_epoll_pwait2(int descriptor, struct epoll_event *events, int count,
                      const struct timespec *timeout, const sigset_t *mask) {
    timed_epoll *next = (timed_epoll *)next_symbol_once(&next_waits.epoll_pwait2, "epoll_pwait2");
    if (!next) { /* another thread's search may store NULL again */
        next = epoll_by_number;
        atomic_store(&next_waits.epoll_pwait2, (void *)next);
    }
    return WAIT_BY(next, mask, (descriptor, events, count, timeout, mask));
}
