/* Defines the sources of a thread's context. One list (context_sources.def) makes the words and
 * bits of OTEL_PROFILER_CONTEXT. */
#ifndef OTELPROF_CONTEXT_SOURCE_H
#define OTELPROF_CONTEXT_SOURCE_H

enum context_source {
#define SOURCE(constant, name, meaning) constant##_WORD,
#include "context_sources.def"
#undef SOURCE
    CONTEXT_SOURCES
};

/* Lists the bits of config.context. */
enum {
#define SOURCE(constant, name, meaning) constant = 1 << constant##_WORD,
#include "context_sources.def"
#undef SOURCE
    CONTEXT_ALL = (1 << CONTEXT_SOURCES) - 1
};

#endif
