#include "masked_threads.h"

#include "arch_context.h"
#include "arch_entry.h"
#include "bare_syscall.h"
#include "clock.h"
#include "kernel/signals_blocked.h"
#include "libc_signal.h"
#include "record/charged_time.h"
#include "record/thread_files.h"
#include "sampler.h"

#include <errno.h>
#include <sys/syscall.h>

/* Checks a thread's mask after so many periods of CPU time without a sample. A thread that spends
 * so long in the kernel has no sample either. */
enum { PERIODS_WITHOUT_SAMPLE = 20 };

static struct libc_signal *libcs(void) {
    return &sampler.libcs;
}

static bool blocks_profiler_signal(uint64_t mask) {
    const int number = atomic_load(&sampler.timers.signal);
    return number != 0 && (mask & signal_bit(number));
}

/* Returns the calling thread's mask, without the signal that the profiler has blocked around a
 * fork. */
static signal_mask thread_mask(void) {
    signal_mask mask = 0;
    (void)signals_change(SIG_BLOCK, NULL, &mask);
    if (profiler_tls.blocked_for_fork)
        mask &= ~signal_bit(profiler_tls.blocked_for_fork);
    return mask;
}

static bool may_take(void) {
    return sampler.on && !atomic_load(&sampler.timers_stay) && libc_signal_take(libcs());
}

void masked_threads_begin(struct thread_state *thread) {
    const int saved = errno;
    if (sampler.on && blocks_profiler_signal(thread_mask()) && may_take())
        atomic_store(&thread->by_libc_signal, true);
    errno = saved;
}

/* Returns true for the calling thread's own state; false in a child of vfork(), which shares the
 * memory but is not the thread. */
static bool is_calling(const struct thread_state *thread) {
    return (uint32_t)bare_syscall(SYS_gettid, 0, 0, 0, 0, 0, 0) == atomic_load(&thread->tid);
}

ARCH_ANY_STACK void masked_threads_expect(uint64_t set) {
    struct thread_state *const thread = profiler_tls.thread;
    if (!thread || !blocks_profiler_signal(set) || atomic_load(&thread->by_libc_signal) ||
        profiler_tls.inside >= OWN_WORK || !atomic_load(sampler.armed) || thread_is_wiped(thread))
        return;
    const int saved = errno;
    if (is_calling(thread) && may_take())
        cpu_timers_use_libc_signal(&sampler.timers, thread);
    errno = saved;
}

/* Handles a mask that was inherited by exec. Expiries from before are pending where the program may
 * see them, so the calling thread drops them. */
void masked_threads_finish_init(void) {
    const struct thread_state *const thread = profiler_tls.thread;
    const int saved = errno;
    masked_threads_expect(thread_mask());
    if (thread && atomic_load(&thread->by_libc_signal))
        sampler_drop_expiries();
    errno = saved;
}

void masked_threads_stop(void) {
    atomic_store(&sampler.timers_stay, true);
}

void masked_threads_after_sample(struct thread_state *thread, const ucontext_t *context) {
    if (!atomic_load_explicit(&thread->by_libc_signal, memory_order_relaxed))
        return;
    if (context_has_interrupted_call(context))
        atomic_store(&libcs()->interrupted, true);
    if (!atomic_load_explicit(&libcs()->interrupted, memory_order_relaxed))
        return;
    cpu_timers_pause(thread);
    thread_count_drop(thread, DROP_SIGNAL_BLOCKED);
}

int masked_threads_signal(void) {
    const struct thread_state *const thread = profiler_tls.thread;
    return thread && atomic_load(&thread->by_libc_signal) ? LIBC_SIGNAL
                                                          : atomic_load(&sampler.timers.signal);
}

/* --- the helper's part --- */

static bool has_no_samples(const struct thread_state *thread, uint32_t tid) {
    const uint64_t sampled = thread->last_cpu_nano;
    const uint64_t used = charged_nano(thread, clock_nano(cpu_clock_of(tid)));
    return used > sampled && used - sampled > PERIODS_WITHOUT_SAMPLE * thread->period_nano;
}

static void count_blocked(struct thread_state *thread) {
    if (!thread->blocked_counted)
        thread_count_drop(thread, DROP_SIGNAL_BLOCKED);
    thread->blocked_counted = true;
}

static void masked_thread_check(struct thread_state *thread) {
    const uint32_t tid = atomic_load(&thread->retired) ? 0 : atomic_load(&thread->tid);
    uint64_t mask;
    if (!tid || thread->blocked_counted || atomic_load(&thread->timer) < 0 ||
        !has_no_samples(thread, tid) || !thread_status_read(tid, "\nSigBlk:\t", 16, &mask))
        return;
    const bool by_libc = atomic_load(&thread->by_libc_signal);
    if (by_libc ? !(mask & signal_bit(LIBC_SIGNAL)) : !blocks_profiler_signal(mask))
        return;
    if (by_libc || (mask & signal_bit(LIBC_SIGNAL)) || !may_take())
        count_blocked(thread);
    else
        cpu_timers_use_libc_signal(&sampler.timers, thread);
}

void masked_threads_poll(void) {
    for (uint32_t i = 0; sampler.on && i < thread_table_count(sampler.recorder->threads); i++)
        masked_thread_check(thread_table_at(sampler.recorder->threads, i));
}
