#include "own_work.h"

#include "profiler_signal_stacks.h"

#include <stdatomic.h>

/* Returns whether the program runs above the frame, on the thread's own stack. */
static bool runs_above(const struct thread_state *thread, uintptr_t sp) {
    return sp > thread->work_frame && stack_range_has(thread->stack, sp) &&
           !stack_range_has(profiler_signal_stacks_present(sp), sp);
}

/* A fibre's stack may be gone: its frames are not read. */
static bool work_was_left(const struct thread_state *thread, uintptr_t sp) {
    return profiler_tls.inside < OWN_WORK && stack_range_has(thread->stack, thread->work_frame) &&
           (arch_return_of_frame(thread->work_frame) != thread->work_return ||
            runs_above(thread, sp));
}

bool own_work_end_left(struct thread_state *thread, uintptr_t sp) {
    if (!work_was_left(thread, sp))
        return false;
    _Atomic uint32_t *const users = thread->entered_users;
    thread->entered_users = NULL;
    /* another jump, in between, leaves the count too high; in the other order, too low */
    atomic_signal_fence(memory_order_seq_cst);
    if (users) /* pairs with has_no_user() (stack_store.c) */
        atomic_fetch_sub_explicit(users, 1, memory_order_release);
    /* pairs with flip_generation(): what the table has is whole (sample_table.c) */
    atomic_store_explicit(&thread->using, 0, memory_order_release);
    thread_end_sample(thread);
    atomic_signal_fence(memory_order_seq_cst);
    profiler_tls.inside = 0;
    return true;
}
