/* Hooks pthread_sigmask, sigprocmask, and rt_sigprocmask by number: a thread that is about to block
 * the sampling signal is sampled by another signal from then on (masked_threads.h). The call itself
 * continues unchanged, and costs some 2 ns more. */
#include "by_number.h"

#include "capture/capture.h"
#include "capture/cpu/masked_threads.h"
#include "capture/kernel/signals_blocked.h"
#include "capture/symbols/next_symbol.h"
#include "capture/unwind/stack_memory.h"
#include "entry.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

enum { KERNEL_SIGSET_BYTES = 8 };

/* --- the next functions: resolved at the first call, by several threads with the same result ---
 */

typedef int mask_function(int how, const sigset_t *set, sigset_t *old);

static mask_function first_thread_mask;
static mask_function first_process_mask;
static struct {
    _Atomic(mask_function *) of_thread;
    _Atomic(mask_function *) of_process;
} next_masks = {first_thread_mask, first_process_mask};

RARE static mask_function *mask_resolve(const char *name) {
    mask_function *function;
    void *const found = next_symbol(name);
    memcpy(&function, &found, sizeof function);
    return function;
}

static int first_process_mask(int how, const sigset_t *set, sigset_t *old) {
    mask_function *const next = mask_resolve("sigprocmask");
    atomic_store_explicit(&next_masks.of_process, next, memory_order_relaxed);
    return next(how, set, old);
}

/* Resolves pthread_sigmask(), and calls it. Calls sigprocmask() as long as no loaded library has
 * the function: glibc before 2.32 has it in libpthread, which may be loaded later. */
static int first_thread_mask(int how, const sigset_t *set, sigset_t *old) {
    mask_function *const next = mask_resolve("pthread_sigmask");
    if (!next)
        return first_process_mask(how, set, old) == 0 ? 0 : errno;
    atomic_store_explicit(&next_masks.of_thread, next, memory_order_relaxed);
    return next(how, set, old);
}

/* --- the hooks --- */

/* Reads the caller's pointer as libc would. */
static inline void mask_before(int how, const sigset_t *set) {
    const int number = atomic_load_explicit(&sampler.timers.signal, memory_order_relaxed);
    if (number != 0 && set && how != SIG_UNBLOCK && (set->__val[0] & signal_bit(number)))
        masked_threads_expect(set->__val[0]);
}

FAST_HOOK int pthread_sigmask(int how, const sigset_t *restrict set, sigset_t *restrict old) {
    mask_before(how, set);
    return atomic_load_explicit(&next_masks.of_thread, memory_order_relaxed)(how, set, old);
}

FAST_HOOK int sigprocmask(int how, const sigset_t *restrict set, sigset_t *restrict old) {
    mask_before(how, set);
    return atomic_load_explicit(&next_masks.of_process, memory_order_relaxed)(how, set, old);
}

enum then before_rt_sigprocmask(unsigned long how, unsigned long set, unsigned long old,
                                unsigned long size) {
    uint64_t mask;
    (void)old;
    if ((how != SIG_BLOCK && how != SIG_SETMASK) || size != KERNEL_SIGSET_BYTES || !sampler.on ||
        !memory_range_is_readable(set, sizeof mask))
        return THEN_NOTHING; /* the kernel will refuse the call */
    memcpy(&mask, (const void *)set, sizeof mask);
    masked_threads_expect(mask);
    return THEN_NOTHING;
}
