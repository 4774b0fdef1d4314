/* Lists the outcomes of reading a thread's context, from one source or from all sources. */
#ifndef OTELPROF_CONTEXT_OUTCOME_H
#define OTELPROF_CONTEXT_OUTCOME_H

enum context_outcome {
    CONTEXT_NONE,  /* nothing is published, or no span and no label is active */
    CONTEXT_READ,  /* the whole context */
    CONTEXT_CUT,   /* the context, without attributes that did not fit */
    CONTEXT_WRONG, /* there is a record that cannot be read or is not valid */
};

#endif
