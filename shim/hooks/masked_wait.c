/* sigsuspend, ppoll, pselect, epoll_pwait: waits with a signal mask of their own. The kernel puts
 * the thread's mask back before a handler begins, so the frame does not show the mask of the wait;
 * program_handlers.c needs it for handlers that it begins. Each hook leaves the mask's address
 * where that file finds it, and forwards the call. */
#include "capture/capture.h"
#include "capture/record/own_signal_stacks.h"
#include "capture/symbols/next_symbol.h"
#include "otelprof.h"

#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/epoll.h>
#include <sys/select.h>

/* The functions behind ours. */
static _Atomic(void *) next_sigsuspend;
static _Atomic(void *) next_ppoll;
static _Atomic(void *) next_pselect;
static _Atomic(void *) next_epoll_pwait;

/* Calls the function behind ours while the mask is noted. A handler that jumps out of the wait
 * leaves the note; read_wait_mask() checks that the hook's frame is still there. */
#define WAIT(name, type, mask, arguments)                                                          \
    __extension__({                                                                                \
        struct own_signal_stack *const own = own_tls.signal_stack;                                 \
        type *const next = (type *)next_symbol_once(&next_##name, #name);                          \
        if (own)                                                                                   \
            own_signal_stack_note_wait(own, (uintptr_t)__builtin_frame_address(0),                 \
                                       (uintptr_t)__builtin_return_address(0), mask);              \
        const int result = next arguments;                                                         \
        if (own)                                                                                   \
            own_signal_stack_note_wait(own, 0, 0, NULL);                                           \
        result;                                                                                    \
    })

OTELPROF_EXPORT int sigsuspend(const sigset_t *mask) {
    typedef int function(const sigset_t *);
    return WAIT(sigsuspend, function, mask, (mask));
}

OTELPROF_EXPORT int ppoll(struct pollfd *files, nfds_t count, const struct timespec *timeout,
                          const sigset_t *mask) {
    typedef int function(struct pollfd *, nfds_t, const struct timespec *, const sigset_t *);
    return WAIT(ppoll, function, mask, (files, count, timeout, mask));
}

OTELPROF_EXPORT int pselect(int count, fd_set *restrict in, fd_set *restrict out,
                            fd_set *restrict failed, const struct timespec *restrict timeout,
                            const sigset_t *restrict mask) {
    typedef int function(int, fd_set *, fd_set *, fd_set *, const struct timespec *,
                         const sigset_t *);
    return WAIT(pselect, function, mask, (count, in, out, failed, timeout, mask));
}

OTELPROF_EXPORT int epoll_pwait(int descriptor, struct epoll_event *events, int count, int timeout,
                                const sigset_t *mask) {
    typedef int function(int, struct epoll_event *, int, int, const sigset_t *);
    return WAIT(epoll_pwait, function, mask, (descriptor, events, count, timeout, mask));
}
