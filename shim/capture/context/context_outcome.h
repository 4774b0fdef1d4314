/* Outcome of reading a thread's context, from one source or from all of them. */
#ifndef OTELPROF_CONTEXT_OUTCOME_H
#define OTELPROF_CONTEXT_OUTCOME_H

enum context_outcome {
    CONTEXT_NONE,  /* nothing is published, or no span and no label is active */
    CONTEXT_READ,  /* all of it */
    CONTEXT_CUT,   /* attributes did not fit */
    CONTEXT_WRONG, /* a record is there, and cannot be read */
};

#endif
