#include "own_work.h"

#include "profiler_signal_stacks.h"

#include <stdatomic.h>

bool own_work_end_left(struct thread_state *thread, uintptr_t sp) {
    const uintptr_t frame = thread->work_frame;
    if (profiler_tls.inside >= OWN_WORK || sp <= frame || !stack_range_has(thread->stack, sp) ||
        !stack_range_has(thread->stack, frame) ||
        stack_range_has(profiler_signal_stacks_present(sp), sp))
        return false;
    if (thread->entered_users)
        /* pairs with has_no_user() (stack_store.c) */
        atomic_fetch_sub_explicit(thread->entered_users, 1, memory_order_release);
    thread->entered_users = NULL;
    /* pairs with flip_generation(): what the table has is whole (sample_table.c) */
    atomic_store_explicit(&thread->using, 0, memory_order_release);
    thread_end_sample(thread);
    thread->work_frame = 0;
    profiler_tls.inside = 0;
    return true;
}
