#include "signal_stacks.h"

/* The end last, and 0 meanwhile: nobody sees the end of one stack with the beginning of another. */
static void note(struct thread_state *thread, struct stack_range stack) {
    atomic_store(&thread->signal_stack_high, 0);
    atomic_store(&thread->signal_stack_used, false);
    atomic_store(&thread->signal_stack_low, stack.low);
    atomic_store(&thread->signal_stack_high, stack.high);
}

struct stack_range signal_stacks_noted(const struct thread_state *thread) {
    const uintptr_t high = atomic_load(&thread->signal_stack_high);
    return (struct stack_range){high ? atomic_load(&thread->signal_stack_low) : 0, high};
}

static bool overlap(struct stack_range a, struct stack_range b) {
    return a.low < b.high && b.low < a.high;
}

struct signal_stack_sharing signal_stacks_note(const struct thread_table *threads,
                                               struct thread_state *thread,
                                               struct stack_range stack) {
    struct signal_stack_sharing sharing = {false, false, false};
    note(thread, stack);
    if (!stack.high)
        return sharing;
    for (uint32_t i = 0; i < thread_table_count(threads); i++) {
        const struct thread_state *const other = thread_table_at(threads, i);
        const struct stack_range theirs = signal_stacks_noted(other);
        if (other == thread || !theirs.high || !atomic_load(&other->tid))
            continue;
        const bool same = overlap(stack, theirs);
        const bool used = same && atomic_load(&other->signal_stack_used);
        const bool is_known = same ? sharing.shared && (sharing.used || !used) : sharing.others;
        /* memory that an ended thread had may be anybody's by now */
        if (is_known || thread_has_ended(other))
            continue;
        sharing.shared |= same;
        sharing.used |= used;
        sharing.others |= !same;
    }
    return sharing;
}
