/* Reads the active span of a context of the program.
 *
 * A context is a list of keys and values; the span is below the key "active_span". A context has
 * one of two layouts, for a build with OpenTelemetry's own types (nostd) or with the C++ library's
 * (STL); the class names distinguish them (known_classes.h). The span's identifiers are read by its
 * own Span::GetContext(), whose place is part of the API's stable ABI. Nothing of the SDK is read.
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
    bool active; /* false: no span, an invalid one, or one that could not be read safely */
};

/* The build of the API that is linked into one object. */
struct api_build {
    unsigned abi;            /* 1, 2 */
    _Atomic uint32_t layout; /* its contexts' layout, once it is known */
    _Atomic uint32_t doubts; /* contexts before that whose layout stayed unknown */
};

enum {
    CONTEXT_BYTES = 32,   /* size of the larger layout */
    CONTEXT_IN_DOUBT = 1, /* stands for an unknown list */
};

/* Returns whether the build's layout is neither of the two that are known: it is not read any more.
 * Context: any. */
bool api_build_is_foreign(const struct api_build *build);

/* Finds the span that is active in the context. Returns the identity of the context's list:
 * contexts of one list are equal to the API. 0: it is empty. Context: the program's threads, within
 * the API's calls. */
uintptr_t context_active_span(const void *context, struct api_build *build, struct span_ids *ids);

/* Destroys a context that the program has given us. Returns false if its layout is not known, and
 * it was left as it is. Context: as above. */
bool context_release(void *context, struct api_build *build);

#endif
