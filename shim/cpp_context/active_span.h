/* Reads the active span of a context of the program.
 *
 * A context is a list of keys and values; the span is below the key "active_span". A context has
 * one of two layouts, for a build with OpenTelemetry's own types (nostd) or with the C++ library's
 * (STL); the class names distinguish them (known_classes.h). The span's identifiers are read by its
 * own Span::GetContext(), whose place is part of the API's stable ABI. No data of the SDK is read.
 */
#ifndef OTELPROF_ACTIVE_SPAN_H
#define OTELPROF_ACTIVE_SPAN_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct span_ids {
    uint8_t trace_id[16];
    uint8_t span_id[8];
    uint8_t flags;
    /* false: there is no span, its ids are not valid, or it could not be read safely */
    bool active;
};

/* Describes a build of the API, linked into one object. */
struct api_build {
    unsigned abi;            /* version of the ABI: 1, 2 */
    _Atomic uint32_t layout; /* layout of its contexts, once it is known */
    _Atomic uint32_t doubts; /* number of contexts so far whose layout stayed unknown */
};

enum {
    CONTEXT_BYTES = 32,   /* size of the larger layout */
    CONTEXT_IN_DOUBT = 1, /* identity of an unknown list */
};

/* Returns whether the build has neither of the two known layouts: then no context of it is read any
 * more. Context: any. */
bool api_build_is_foreign(const struct api_build *build);

/* Finds the span that is active in the context, and fills in `*ids`. Returns the identity of the
 * context's list; 0: the list is empty; CONTEXT_IN_DOUBT: its layout is not known. For the API,
 * contexts with the same list are equal. Context: the program's threads, within the API's calls. */
uintptr_t context_active_span(const void *context, struct api_build *build, struct span_ids *ids);

/* Destroys a context that the program has passed to us. Returns false, without a change, if its
 * layout is not known, unless it has no owners to release. Context: as context_active_span(). */
bool context_release(void *context, struct api_build *build);

#endif
