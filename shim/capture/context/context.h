/* Reads the context of a thread: the span that it works for, and its labels.
 *
 * Programs publish the context in thread-local variables (the sources of context_sources.def). The
 * helper finds each variable when its object is loaded; the signal handler and a sampled allocation
 * read it without a lock, by reads that cannot fault (foreign_memory.h). A record that is being
 * changed, or is not valid, means no context.
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
        _Atomic bool busy;         /* a thread is writing `variables` */
        _Atomic uint64_t expected; /* number of calls so far that may load an object */
        _Atomic bool announced;    /* the helper was woken for such a call since its last poll */
        uint64_t
            /* value of `expected` at the last poll; only the helper uses this and the following
             * fields */
            seen;
        uint64_t next;     /* CLOCK_MONOTONIC, ns; 0: no search is due */
        uint64_t delay;    /* ns between the last search and the next */
        uint64_t rest_end; /* CLOCK_MONOTONIC, ns: no search before */
        bool is_expecting; /* an object that was announced may still be loaded */
        uint64_t adds;     /* the loader's counters at the last complete search */
        uint64_t subs;
    } polling;
};

/* Reads the calling thread's context into `*context`; if there is none, its content is undefined.
 * `programs`: the context that the program has set by otelprof.h; NULL: none. The first source of
 * context_sources.def that has a context counts. Cost without variables: some instructions.
 * Context: signal. Async-signal-safe: yes. */
enum context_outcome context_read(const struct context_reader *reader,
                                  const struct program_context *programs,
                                  struct sample_context *context);

/* Reads the context of the thread with thread pointer `pointer`; `programs`: as for context_read().
 * That thread may run, wait or end meanwhile, because the kernel copies its memory. Data that
 * changes during the copy is CONTEXT_WRONG. Cost: some microseconds if a variable is published.
 * Context: the helper. */
enum context_outcome context_read_of(const struct context_reader *reader, uintptr_t pointer,
                                     const struct program_context *programs,
                                     struct sample_context *context);

/* Records that an object may be loaded now. Returns true if the helper may sleep too long and the
 * caller should wake it, once for each poll; the next poll is then at context_next_poll(). Context:
 * any. Async-signal-safe: yes. */
bool context_expect(struct context_reader *reader);

/* Returns the time of the helper's next poll (CLOCK_MONOTONIC, ns); UINT64_MAX: none. After an
 * announced load the helper searches at growing intervals, for a second. The first poll comes after
 * some milliseconds, so short processes never search. Context: the helper. */
uint64_t context_next_poll(struct context_reader *reader);

/* Makes the helper rest after a poll that has used so much CPU time, for this and other searches:
 * fifty times as long, at most half a second, because a program may load all the time. Context: the
 * helper. */
void context_rest_after(struct context_reader *reader, uint64_t cpu_nano);

/* Searches for variables, if an object was loaded or unloaded since the last search. If another
 * thread holds the loader's lock, the next poll searches. `others_done`: false if the caller's own
 * search was prevented and needs a next poll. Context: the helper, under the quiesce
 * lock. */
void context_poll(struct context_reader *reader, bool others_done);

/* Forgets variables of unloaded objects. Call between dlclose() and modules_end_unload(). Context:
 * calm; takes the loader's lock. */
void context_forget_unloaded(struct context_reader *reader);

/* Cancels searches that were under way or due in the parent. Context: fork handler. */
void context_after_fork(struct context_reader *reader);

#endif
