/* Reads the process context of OTEP 4719: an application describes itself in a mapping named
 * OTEL_CTX, so that its profiles carry the same resource as its traces.
 *
 * The application may publish, change, remove or corrupt it at any time; it does not know the
 * profiler and takes no lock. So everything is read by process_vm_readv, as from another process:
 * if the memory has gone, the call returns an error instead of a fault. Data counts only if the
 * time of publication was the same before and after reading it. With a known mapping, an update is
 * one short read. A search for one reads /proc/self/maps, which takes longer the more mappings
 * there are; so it takes at most a thousandth of the time, and is also done when a mapping has
 * gone. A forked child does not inherit the mapping: publishers mark it so. Some applications
 * publish it only for the names of the keys in threads' contexts. Context: flush.
 */
#ifndef OTELPROF_PROCESS_CONTEXT_H
#define OTELPROF_PROCESS_CONTEXT_H

#include "attribute_set.h"
#include "context_payload.h"
#include "log.h"

struct process_context {
    const struct log *log;
    uint64_t address;          /* start of the mapping; 0: none is known */
    uint64_t published_nano;   /* publication time of the last data read */
    uint64_t no_search_before; /* CLOCK_MONOTONIC, nanoseconds */
    bool unreadable_logged;
    bool expected;          /* process_context_expect() was called; nothing was found since */
    struct key_names names; /* as published, while it is published */
};

/* Reads it again. Returns true if `*set`, which then holds the published attributes, has changed;
 * it must be the same set each time and begins empty. While the application is writing, the
 * previous attributes stay. Unreadable data counts as not published, and is logged once. */
bool process_context_update(struct process_context *context, struct attribute_set *set);

/* Reports that threads have keys by number, so a context must exist: the first such call makes the
 * next update search for it at once. */
void process_context_expect(struct process_context *context);

void process_context_clear(struct process_context *context);

/* Returns the start of the mapping if `line` of /proc/PID/maps is one of that name; else 0. Pure.
 */
uint64_t process_context_mapping(const char *line);

#endif
