/* Keeps the stack of each thread's last CPU sample, in which the thread was last seen running.
 *
 * The signal handler notes in its thread's table which sample is the last one
 * (sample_table_last_cpu). A harvest empties the table, so the helper first copies the stacks to a
 * table of its own. Context: the helper, unless a function says otherwise.
 */
#ifndef OTELPROF_LAST_STACKS_H
#define OTELPROF_LAST_STACKS_H

#include "record/thread_table.h"

#include <stdbool.h>

struct last_stacks {
    struct sample_table table; /* stacks of all threads, in chunks of their pool */
};

/* Copies the stacks; must be called before each harvest. A thread without a newer stack keeps its
 * old one. Stacks of ended threads are dropped. */
void last_stacks_keep(struct last_stacks *stacks, struct thread_table *threads);

/* Returns the frames, flags, interval and context of a thread's last CPU sample, and the thread's
 * id, in `*stack`; valid until the next last_stacks_keep(). Returns false if the thread had no
 * sample, or there was no memory for the copy. */
bool last_stack_of(const struct thread_table *threads, const struct thread_state *thread,
                   struct sample *stack);

/* Drops all stacks in a forked child. Context: fork handler. */
void last_stacks_after_fork(struct last_stacks *stacks);

#endif
