/* The context of the interrupted thread: which span it works for, and its labels.
 *
 * Programs publish it in thread-local variables (the sources of context_sources.def), each of
 * which is found on the helper, when its object is loaded, and read in the signal handler or in a
 * sampled allocation: by reads of memory that cannot fault (foreign_memory.h), without a lock.
 * A record that is being changed, or makes no sense, means no context.
 */
#ifndef OTELPROF_CONTEXT_H
#define OTELPROF_CONTEXT_H

#include "context_outcome.h"
#include "context_source.h"
#include "sample_context.h"
#include "thread_variable.h"
#include "unwind/modules.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct program_context;

struct context_reader {
    unsigned sources; /* CONTEXT_* bits of the configuration; 0: nothing is read */
    struct modules *modules;
    struct thread_variables variables;
    struct context_poll {
        _Atomic bool busy;         /* a thread writes `variables` */
        _Atomic uint64_t expected; /* calls that may load something, so far */
        uint64_t
            seen; /* expectations seen so far; this and the following fields belong to the helper */
        uint64_t next;     /* CLOCK_MONOTONIC, ns; 0: there is no need */
        uint64_t delay;    /* from the previous search to that one; ns */
        bool is_expecting; /* an expected object may still come */
        uint64_t adds;     /* the loader's counters at the last complete search */
        uint64_t subs;
    } polling;
};

/* Reads the calling thread's context into `*context`; if there is none, its content is undefined.
 * `programs`: the context that the program set for the thread by otelprof.h; NULL: none. The first
 * source that has a context counts, in the order of context_sources.def. Cost: without variables,
 * some instructions. Context: signal. Async-signal-safe: yes. */
enum context_outcome context_read(const struct context_reader *reader,
                                  const struct program_context *programs,
                                  struct sample_context *context);

/* Reads another thread's context, whose thread pointer is `pointer`, while it runs, waits or ends:
 * the kernel copies all of its memory. Data that changes meanwhile is CONTEXT_WRONG. Cost: some
 * microseconds where anything is published. Context: the helper. */
enum context_outcome context_read_of(const struct context_reader *reader, uintptr_t pointer,
                                     const struct program_context *programs,
                                     struct sample_context *context);

/* Records that an object may be loaded now. true: the helper sleeps and the caller should wake it;
 * its next poll is at context_next_poll(). Context: any. Async-signal-safe: yes. */
bool context_expect(struct context_reader *reader);

/* Returns the time of the helper's next poll (CLOCK_MONOTONIC, ns); UINT64_MAX: none. An object
 * being loaded is searched for repeatedly, at growing intervals, for a second. The first poll comes
 * after some milliseconds, so short processes do without. Context: the helper. */
uint64_t context_next_poll(struct context_reader *reader);

/* Searches for variables, if anything was loaded or unloaded since the last time. Context: the
 * helper, under the quiesce lock; takes the loader's lock, unless another thread holds it: then the
 * next poll does it. */
void context_poll(struct context_reader *reader);

/* Forgets variables of unloaded objects. Call between dlclose() and modules_end_unload(). Context:
 * calm; takes the loader's lock. */
void context_forget_unloaded(struct context_reader *reader);

/* Context: fork handler. */
void context_after_fork(struct context_reader *reader);

#endif
