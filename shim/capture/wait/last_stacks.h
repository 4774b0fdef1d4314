/* Where each thread was last seen running: the stack of its last CPU sample.
 *
 * The sample itself says so, by a store in its thread's own table (sample_table_last_cpu). A
 * harvest takes that away, so the stacks are kept before, in a table of the helper's.
 * Context: the helper, unless it says otherwise.
 */
#ifndef OTELPROF_LAST_STACKS_H
#define OTELPROF_LAST_STACKS_H

#include "record/thread_table.h"

#include <stdbool.h>

struct last_stacks {
    struct sample_table table; /* of all threads, in chunks of their pool */
};

/* Before each harvest. What was had until now of a thread that has no newer one stays; of threads
 * that are gone nothing does. */
void last_stacks_keep(struct last_stacks *stacks, struct thread_table *threads);

/* The frames, flags, interval and context of a thread's last CPU sample, and its id; valid until
 * the next last_stacks_keep(). false: it had none, or what it had found no memory. */
bool last_stack_of(const struct thread_table *threads, const struct thread_state *thread,
                   struct sample *stack);

/* Context: fork handler. */
void last_stacks_after_fork(struct last_stacks *stacks);

#endif
