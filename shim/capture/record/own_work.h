/* Marks the profiler's work on a thread of the program, so that no sample begins within it, and
 * ends the mark if a handler of the program has left the work by a jump.
 *
 * Most signals are blocked meanwhile, but not those that the work itself could raise: another
 * thread, or process, may send such a signal (SIGSEGV, SIGTRAP), and its handler may jump. Then the
 * frame in which the work began is gone: its return address has been overwritten, or the program
 * runs above it on the same stack. A handler that still runs within the work runs below that frame,
 * or on the alternate stack.
 * Context: the thread itself. Async-signal-safe: yes. */
#ifndef OTELPROF_OWN_WORK_H
#define OTELPROF_OWN_WORK_H

#include "arch_signal_frame.h"
#include "thread_table.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Ends work that was left by a jump, if the program now runs at stack pointer `sp`. Returns false,
 * without a change, if the work goes on, or may go on: the thread's stack is a fibre's. A sample
 * that was not complete is lost. */
bool own_work_end_left(struct thread_state *thread, uintptr_t sp);

/* Returns whether work goes on in the calling thread, which runs the program's code at `sp`. */
static inline bool own_work_goes_on(struct thread_state *thread, uintptr_t sp) {
    return profiler_tls.inside && !own_work_end_left(thread, sp);
}

/* Begins work in the caller's frame. */
__attribute__((always_inline)) static inline void own_work_begin(struct thread_state *thread) {
    const uintptr_t frame = (uintptr_t)__builtin_frame_address(0);
    (void)own_work_goes_on(thread, frame);
    /* the handler of a signal that comes in between finds work that it does not judge, or all */
    thread->work_frame = 0;
    atomic_signal_fence(memory_order_seq_cst);
    profiler_tls.inside++;
    atomic_signal_fence(memory_order_seq_cst);
    thread->work_return = arch_return_of_frame(frame);
    atomic_signal_fence(memory_order_seq_cst);
    thread->work_frame = frame;
}

static inline void own_work_end(void) {
    if (profiler_tls.inside) /* a child that a handler has forked within the work has none */
        profiler_tls.inside--;
}

/* Begins work that is never judged, because no signal of the program's can come in between, or the
 * thread ends. */
static inline void own_work_begin_unjudged(struct thread_state *thread) {
    thread->work_frame = 0;
    atomic_signal_fence(memory_order_seq_cst);
    profiler_tls.inside++;
}

#endif
