#include "context.h"

#include "own_context.h"

enum context_outcome context_read(const struct context_reader *reader,
                                  const struct own_context *own, struct sample_context *context) {
    if (own && (reader->sources & CONTEXT_OTELPROF))
        return own_context_read(own, context);
    return CONTEXT_NONE;
}
