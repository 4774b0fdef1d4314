/* The process context of OTEP 4719: what an application says about itself, in a mapping of its own
 * that is named OTEL_CTX, so that its profiles carry the same resource as its traces.
 *
 * The application may publish at any time, change it, take it back, or write nonsense there; it
 * knows nothing of us and takes no lock. So everything is read by process_vm_readv, as from another
 * process: if the memory has gone, the call returns an error and nobody faults. What was read
 * counts only if the time of publication was the same before and after. While a mapping is known,
 * looking is one short read; searching for one means reading /proc/self/maps, which takes the
 * longer the more mappings there are, and is therefore done for at most a thousandth of the time,
 * and when one has gone. A forked child has nothing of its parent's: publishers mark the mapping
 * so.
 * It may be for the names of the keys in threads' contexts alone that it is published.
 * Context: flush.
 */
#ifndef OTELPROF_PROCESS_CONTEXT_H
#define OTELPROF_PROCESS_CONTEXT_H

#include "attribute_set.h"
#include "context_payload.h"
#include "log.h"

struct process_context {
    const struct log *log;
    uint64_t address;          /* of the mapping; 0 = none is known */
    uint64_t published_nano;   /* of what was read last */
    uint64_t no_search_before; /* CLOCK_MONOTONIC, nanoseconds */
    bool complained;
    bool expected;          /* and not found since */
    struct key_names names; /* as published, for as long as it is */
};

/* Looks again, and says whether that changed `*set`, which then holds what is published now; it
 * must be the same set each time and begins empty. While the application is writing, what it said
 * before stays. What cannot be read counts as not published, and is logged once. */
bool process_context_update(struct process_context *context, struct attribute_set *set);

/* Threads have keys by number, so it must be somewhere: the next update searches for it at once,
 * the first time. */
void process_context_expect(struct process_context *context);

void process_context_clear(struct process_context *context);

/* The start of the mapping if `line` of /proc/PID/maps is one of that name; else 0. Pure. */
uint64_t process_context_mapping(const char *line);

#endif
