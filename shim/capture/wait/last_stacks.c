#include "last_stacks.h"

/* Returns true if the record is of this thread, and not of an earlier one in the slot. */
static bool has_last_stack(const struct thread_table *threads, uint32_t reference, uint32_t tid,
                           struct sample *stack) {
    if (!reference || !tid)
        return false;
    *stack = sample_table_stack_at(&threads->pool, reference);
    return stack->tid == tid;
}

bool last_stack_of(const struct thread_table *threads, const struct thread_state *thread,
                   struct sample *stack) {
    /* pairs with thread_begin() */
    const uint32_t tid = atomic_load_explicit(&thread->tid, memory_order_acquire);
    const uint32_t now = atomic_load_explicit(&thread->generation, memory_order_relaxed);
    return has_last_stack(threads, sample_table_last_cpu(&thread->tables[now]), tid, stack) ||
           has_last_stack(threads, sample_table_last_cpu(&thread->tables[1 - now]), tid, stack) ||
           has_last_stack(threads, thread->last_stack, tid, stack);
}

static void ignore_sample(void *arg, const struct sample *sample) {
    (void)arg;
    (void)sample;
}

void last_stacks_keep(struct last_stacks *stacks, struct thread_table *threads) {
    struct sample_table before = stacks->table;
    struct sample stack;
    stacks->table = (struct sample_table){.first_chunk = CHUNK_NONE};
    for (uint32_t i = 0; i < thread_table_count(threads); i++) {
        struct thread_state *const thread = thread_table_at(threads, i);
        const bool had = last_stack_of(threads, thread, &stack);
        thread->last_stack = had ? sample_table_keep(&stacks->table, &threads->pool, &stack) : 0;
    }
    sample_table_drain(&before, &threads->pool, ignore_sample, NULL);
}

void last_stacks_after_fork(struct last_stacks *stacks) {
    stacks->table = (struct sample_table){.first_chunk = CHUNK_NONE};
}
