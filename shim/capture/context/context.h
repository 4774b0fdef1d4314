/* The context of the interrupted thread: which span it works for, and its labels.
 *
 * Programs publish it in thread-local variables (the sources of context_sources.def), each of
 * which is found when its object is loaded, on the helper, and read in the signal handler or in a
 * sampled allocation: memory reads alone, which cannot fault, no system call, no lock.
 * A record that is being changed, or makes no sense, means no context.
 */
#ifndef OTELPROF_CONTEXT_H
#define OTELPROF_CONTEXT_H

#include "context_source.h"
#include "sample_context.h"

#include <stdbool.h>
#include <stdint.h>

/* What can be said of a thread. */
enum context_outcome {
    CONTEXT_NONE,  /* nothing is published, or no span and no label is active */
    CONTEXT_READ,  /* all of it */
    CONTEXT_CUT,   /* attributes did not fit */
    CONTEXT_WRONG, /* a record is there, and cannot be read */
};

struct own_context;

struct context_reader {
    unsigned sources; /* CONTEXT_* bits of the configuration; 0: nothing is read */
};

/* Reads the calling thread's context into `*context`; where it is none, nothing is written there.
 * `own`: what the program said of the thread by otelprof.h; NULL: nothing.
 * Context: signal. Async-signal-safe: yes. */
enum context_outcome context_read(const struct context_reader *reader,
                                  const struct own_context *own, struct sample_context *context);

#endif
