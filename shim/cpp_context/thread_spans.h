/* What is active on each thread, and its publication: the record of OTEP 4947.
 *
 * The program's storage keeps a stack of the contexts attached to a thread. Beside it we keep the
 * last few, each with its span, so that a context's end brings back the span before without a
 * question. Of what lies deeper, or was attached before we came, the storage itself is asked.
 * In doubt no span is published: no link is better than a wrong one.
 *
 * The record is the thread's own, fixed, and changed by its thread alone: invalid, written, valid
 * again. Who reads it has interrupted that thread.
 */
#ifndef OTELPROF_THREAD_SPANS_H
#define OTELPROF_THREAD_SPANS_H

#include "active_span.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MOST_STORAGES = 16 };

/* A context that is attached to the calling thread. */
struct attached {
    uintptr_t token;  /* by which it will be detached */
    uintptr_t list;   /* which context it is */
    unsigned storage; /* to which it was attached, below MOST_STORAGES */
};

/* The context was attached, and is the last. Context: the program's threads. */
void thread_spans_push(const struct attached *attached, const struct span_ids *ids);

/* The context of `token` was detached from its storage, and with it all that was attached to that
 * storage after it. false: what is active now has to be asked of the storage. Context: as above. */
bool thread_spans_pop(uintptr_t token, unsigned storage);

/* What the storage answered, after that: the list of its last context, 0: it has none.
 * Context: as above. */
void thread_spans_found(unsigned storage, uintptr_t list, const struct span_ids *ids);

#endif
