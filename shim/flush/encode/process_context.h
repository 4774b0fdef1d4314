/* Reads the process context of OTEP 4719: an application describes itself in a mapping named
 * OTEL_CTX, so that its profiles carry the same resource as its traces.
 *
 * The application may publish, change, remove or corrupt the context at any time; it does not know
 * the profiler and takes no lock. So all data is copied by the kernel (safe_read.h): for
 * unmapped memory the call returns an error instead of a fault. Data counts only if the time of
 * publication was the same before and after the read. With a known mapping, an update is one short
 * read. Without one, or if it was unmapped, /proc/thread-self/maps is searched; with many mappings
 * that takes long, so searches take at most a thousandth of the time. A forked child does not
 * inherit the mapping: publishers mark it so. Some applications publish a context only for the
 * names of the keys in threads' contexts. Context: flush.
 */
#ifndef OTELPROF_PROCESS_CONTEXT_H
#define OTELPROF_PROCESS_CONTEXT_H

#include "attribute_set.h"
#include "context_payload.h"
#include "log.h"
#include "process_maps.h"

struct process_context {
    const struct log *log;
    uint64_t address;          /* start of the mapping; 0: no mapping is known */
    uint64_t published_nano;   /* publication time of the last data read */
    uint64_t no_search_before; /* CLOCK_MONOTONIC, nanoseconds */
    bool unreadable_logged;
    /* process_context_expect() was called, and no context was found since */
    bool expected;
    struct key_names names; /* names of keys, while the application publishes them */
};

/* Reads the context again into `*set`, and the names of keys. Returns true if the set may have
 * changed. The caller passes the same set at each call, empty at first. While the application is
 * writing, the previous attributes stay. Unreadable data counts as not published, and is logged
 * once, at DEBUG. */
bool process_context_update(struct process_context *context, struct attribute_set *set);

/* Reports that threads have keys by number, so a context must exist. If no context is known, the
 * next update searches for it at once, after the first of such calls. */
void process_context_expect(struct process_context *context);

/* Frees the names of keys. */
void process_context_clear(struct process_context *context);

/* Returns the start of a mapping that is named OTEL_CTX; of any other 0. Pure. */
uint64_t process_context_mapping(const struct process_mapping *mapping);

#endif
