/* Keeps the active span of each thread, and publishes it as the record of OTEP 4947.
 *
 * The program's storage keeps a stack of the contexts attached to a thread. Beside that stack we
 * keep the last few contexts, each with its span, so that the end of a context restores the
 * previous span without a query. Contexts that are deeper, or were attached before the profiler
 * started, are queried from the storage itself. In doubt no span is published, because no link is
 * better than a wrong one.
 *
 * The record belongs to the thread, at a fixed address, and only the thread changes it: it marks
 * the record as invalid, writes it, and marks it as valid. A reader interrupts that thread. */
#ifndef OTELPROF_THREAD_SPANS_H
#define OTELPROF_THREAD_SPANS_H

#include "active_span.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MOST_STORAGES = 16 };

/* Describes a context that is attached to the calling thread. */
struct attached {
    uintptr_t token;  /* its token for Detach() */
    uintptr_t list;   /* identity of its list */
    unsigned storage; /* number of its storage, below MOST_STORAGES */
};

/* Records that the program has attached a context, which is now the last context of its storage.
 * Context: the program's threads. */
void thread_spans_push(const struct attached *attached, const struct span_ids *ids);

/* Returns whether a kept context of the storage has this token. Context: as thread_spans_push(). */
bool thread_spans_has(uintptr_t token, unsigned storage);

/* Records that the program has detached the context of `token` from its storage, and with it all
 * contexts attached to that storage after it. Returns false if the storage must be queried for the
 * context that is active now. Context: as thread_spans_push(). */
bool thread_spans_pop(uintptr_t token, unsigned storage);

/* Stores the storage's response to that query: the list of its last context; 0: it has no context;
 * CONTEXT_IN_DOUBT: it is not known, and no span is published. Context: as thread_spans_push(). */
void thread_spans_found(unsigned storage, uintptr_t list, const struct span_ids *ids);

#endif
