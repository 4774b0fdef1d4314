#include "thread_life.h"

#include "arch_entry.h"
#include "arch_machine.h"
#include "capture.h"
#include "clock.h"
#include "kernel/signals_blocked.h"
#include "poisson.h"
#include "record/countdown.h"
#include "record/own_work.h"
#include "record/stack_room.h"
#include "wait/holder_names.h"

#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

void thread_begin(struct thread_state *thread, struct stack_range stack) {
    thread->stack = stack;
    thread->pointer = thread_pointer();
    /* without the kernel's random bytes: a sandbox may forbid that call */
    thread->random = random_first(monotonic_nano(), (uint64_t)getpid(), (uintptr_t)thread);
    /* pairs with the acquire loads of the id in wait/ and record/: the bounds of the stack are set
     */
    atomic_store_explicit(&thread->tid, (uint32_t)syscall(SYS_gettid), memory_order_release);
    profiler_tls.stack = stack;
    thread->alloc_settings = settings_version(&capture.settings);
    profiler_tls.thread = thread;
    profiler_tls.alloc_left = COUNTDOWN_NEVER;
    if (capture.alloc_on)
        heap_draw_gap(&capture.heap, thread);
    sampler_start_thread(thread);
}

static void forget_timer(struct thread_state *thread) {
    sampler_stop_thread(thread);
}

void capture_sweep_threads(uint32_t limit) {
    thread_table_sweep(&capture.threads, limit, forget_timer);
}

void thread_end(struct thread_state *thread) {
    if (thread_is_wiped(thread))
        return;
    if (profiler_tls.inside >= OWN_WORK ||
        atomic_load(&capture_is_off)) { /* set by capture_leave_thread() */
        thread_table_retire(&capture.threads, thread);
        return;
    }
    own_work_begin_unjudged(thread);
    if (sampler.on)
        record_remainder(&capture.recorder, thread);
    wait_sampler_end_thread(&capture.waits, thread);
    if (thread->sampled || atomic_load(&thread->wall.sampled))
        record_name(&capture.recorder, thread);
    holder_names_end(atomic_load(&thread->tid));
    own_work_end();
    thread_table_retire(&capture.threads, thread);
}

void capture_await_end(void) {
    struct thread_state *const thread = profiler_tls.thread;
    if (thread && !thread_is_wiped(thread))
        wall_leave(&thread->wall, monotonic_nano());
}

void capture_leave_thread(void) {
    struct thread_state *const thread = profiler_tls.thread;
    if (!atomic_load(&capture.armed) || !thread || getpid() != capture.pid)
        return;
    sampler_stop_thread(thread);
    profiler_tls.inside = OWN_WORK;
    profiler_tls.alloc_left = COUNTDOWN_NEVER;
    atomic_store(&capture.left, true);
}

/* Returns true for an unregistered thread, too, because only a thread that has left creates
 * unregistered threads. */
bool capture_has_left(void) {
    return atomic_load(&capture.left) && (profiler_tls.inside >= OWN_WORK || !profiler_tls.thread);
}

bool capture_is_of_this_thread(void) {
    return (profiler_tls.is_profiler_thread || !capture_has_left()) && getpid() == capture.pid;
}

void thread_is_gone(void) {
    if (atomic_fetch_sub(&capture.live_threads, 1) == 1 && capture.on_last_thread)
        capture.on_last_thread();
}

bool thread_may_be_in_handler(void) {
    return atomic_load(&capture.has_handlers) && profiler_tls.thread && !thread_is_calm();
}

bool thread_is_calm(void) {
    struct thread_state *const thread = profiler_tls.thread;
    if (thread_is_wiped(thread) || !stack_has_room() ||
        own_work_goes_on(thread, (uintptr_t)__builtin_frame_address(0)))
        return false;
    const int saved = errno;
    signal_mask before;
    /* blocks signals, because a handler that leaves by a jump would skip the end of this work */
    const bool blocked = signals_block(&before);
    own_work_begin(thread);
    uint64_t registers[REGISTER_COUNT];
    REGISTERS_HERE(registers);
    struct unwind unwind = {.thread_stack = thread->stack,
                            .frames = thread->frames,
                            .max = capture.threads.max_depth,
                            .own_unloads = profiler_tls.unloads};
    const enum unwind_end end = unwind_walk(&capture.unwinder, registers, &unwind);
    own_work_end();
    if (blocked)
        signals_restore(&before);
    errno = saved;
    return end == UNWIND_COMPLETE && !unwind.crossed_signal && !unwind.by_record_alone;
}

ARCH_ANY_STACK void capture_offer_helper(void) {
    void (*const want_helper)(bool) =
        atomic_load_explicit(&capture.want_helper, memory_order_relaxed);
    const struct thread_state *const thread = profiler_tls.thread;
    const int saved = errno;
    /* measures the CPU time of all threads, since the calling one may only wait; waits are profiled
     * without work */
    if (want_helper && atomic_load(&capture.armed) && thread && !profiler_tls.inside &&
        !thread_is_wiped(thread) &&
        (clock_nano(CLOCK_PROCESS_CPUTIME_ID) >= sampler.period_nano ||
         atomic_load(&wait_slots_on)))
        want_helper(false);
    errno = saved;
}
