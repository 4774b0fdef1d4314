/* Which alternate signal stacks the threads have.
 *
 * A program may give one such stack to all its threads (varnishd does): it is for the report of a
 * crash, and no two signals are ever to be delivered there. Ours come to every thread, and two of
 * them on one stack at a time would restore the registers of one thread in the other.
 */
#ifndef OTELPROF_SIGNAL_STACKS_H
#define OTELPROF_SIGNAL_STACKS_H

#include "record/thread_table.h"

#include <signal.h>
#include <stdbool.h>

/* {0, 0}: none. Async-signal-safe: yes. */
static inline struct stack_range signal_stack_range(const stack_t *stack) {
    const uintptr_t low = (uintptr_t)stack->ss_sp;
    if (stack->ss_flags & SS_DISABLE)
        return (struct stack_range){0, 0};
    return (struct stack_range){low, low + stack->ss_size};
}

struct signal_stack_sharing {
    bool shared; /* a part of it at least is another thread's too */
    bool used;   /* and our signal may come there to one of those threads */
    bool others; /* there is another thread with one that has nothing in common with it */
};

/* Notes that the calling thread, whose slot this is, has or is about to get `stack` ({0, 0}: none),
 * and compares it with those of the other threads. Where two threads note the same at the same
 * time, at least one finds it shared. Context: any. Async-signal-safe: yes. */
struct signal_stack_sharing signal_stacks_note(const struct thread_table *threads,
                                               struct thread_state *thread,
                                               struct stack_range stack);

/* What was noted last. Context: the thread itself. */
struct stack_range signal_stacks_noted(const struct thread_state *thread);

#endif
