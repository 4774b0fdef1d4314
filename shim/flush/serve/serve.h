/* The process answers while it runs (OTEL_PROFILER_LISTEN): pprof, OTLP, its state, and control.
 *
 * Requests arrive in the helper's waits and are answered by its loop. Who asks for a profile of a
 * time gets what exports hold that begin and end with it: so the loop makes exports at the moments
 * that serve_next_export() tells, and hands every request of every export over.
 * Context of all: flush.
 */
#ifndef OTELPROF_SERVE_H
#define OTELPROF_SERVE_H

#include "control/control.h"
#include "encode/resource.h"
#include "export/sender.h"
#include "harvest.h"

#include <stddef.h>
#include <stdint.h>

struct serve;

/* Who and what is answered from. All stay where they are. */
struct serve_of {
    const struct capture_api *api;
    const struct resource *resource;
    struct control *control;
    const struct sender *sender; /* NULL: nothing is sent */
};

/* Listens where `api->config->listen` says. NULL: it cannot, which has been logged. Where another
 * process answers there, it waits until serve_try_again() finds the place free. */
struct serve *serve_open(const struct serve_of *of);
void serve_close(struct serve *serve); /* NULL will do */

bool serve_answers(const struct serve *serve);
/* It has answered once, so all exports belong to its sums, also while it waits. */
bool serve_sums(const struct serve *serve);
/* Where it waits, or its socket's file is gone. true: it answers from now on. */
bool serve_try_again(struct serve *serve);

/* This thread ends, and another goes on: descriptors are lost, connections with them. */
void serve_pause(struct serve *serve);
void serve_resume(struct serve *serve);

/* When somebody wants an export (CLOCK_MONOTONIC, ns); UINT64_MAX: nobody does. */
uint64_t serve_next_export(const struct serve *serve);

/* An encoded ExportProfilesServiceRequest of the export under way; the caller's. */
void serve_take(struct serve *serve, const uint8_t *request, size_t size);
/* There is no memory for an export: who wants one now is told so. */
void serve_refuse(struct serve *serve);
/* That was all of it: what was recorded up to `now` (CLOCK_MONOTONIC, ns), which is `now_unix`. */
void serve_taken(struct serve *serve, uint64_t now, uint64_t now_unix);

/* What is due: time limits of connections, answers that have become possible. */
void serve_step(struct serve *serve);
uint64_t serve_next_step(const struct serve *serve); /* CLOCK_MONOTONIC, ns; UINT64_MAX */

#endif
