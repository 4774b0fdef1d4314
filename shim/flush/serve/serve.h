/* Serves the HTTP endpoint of the process (OTEL_PROFILER_LISTEN): pprof, OTLP, status, and control.
 *
 * Requests arrive during the helper's waits, and the export loop replies to them. A profile over a
 * time is made from exports that begin and end with that time. So the loop exports at the moments
 * that serve_next_export() returns, and passes every part of every export to serve_take().
 * Context of all: flush.
 */
#ifndef OTELPROF_SERVE_H
#define OTELPROF_SERVE_H

#include "control/control.h"
#include "encode/profile_export.h"
#include "export/sender.h"
#include "harvest.h"

#include <stddef.h>
#include <stdint.h>

struct serve;

/* Names the sources of the replies. All of them must outlive the endpoint. */
struct serve_of {
    const struct capture_api *api;
    const struct resource *resource;
    struct control *control;
    const struct sender *sender; /* NULL: nothing is sent */
};

/* Listens at `api->config->listen`. If that fails, logs it and returns NULL. If another process
 * holds the address, waits for it: see serve_try_again(). */
struct serve *serve_open(const struct serve_of *of);
void serve_close(struct serve *serve); /* accepts NULL */

bool serve_is_listening(const struct serve *serve);
/* Returns true if the process has listened once: from then on all exports are part of its sums,
 * even while it waits for its address. */
bool serve_sums(const struct serve *serve);
/* Tries to listen again if the process waits for its address or has lost its socket's file. Returns
 * true if it has begun to listen. */
bool serve_try_again(struct serve *serve);

/* Suspend and resume across the end of a helper thread: descriptors and connections are lost with
 * it. */
void serve_pause(struct serve *serve);
void serve_resume(struct serve *serve);

/* Returns when a client needs an export (CLOCK_MONOTONIC, ns); 0: now; UINT64_MAX: never. */
uint64_t serve_next_export(const struct serve *serve);

/* Returns true if a client waits for exports as OTLP: of a time, or for the next one. */
bool serve_records(const struct serve *serve);

/* Adds a part of the current export, as a list (`writer`) and encoded; the caller keeps both. */
void serve_take(struct serve *serve, const struct otlp_writer *writer,
                const struct encoded *encoded);
/* Refuses the windows of clients that need an export now, because there is no memory for it.
 * serve_step() replies to them. */
void serve_refuse(struct serve *serve);
/* Ends the current export, which covers samples up to `now` (CLOCK_MONOTONIC, ns), equal to
 * `now_unix`. `sampled_nano`: how long each kind was sampled in its interval. */
void serve_end_export(struct serve *serve, uint64_t now, uint64_t now_unix,
                      const uint64_t sampled_nano[static SAMPLE_KINDS]);

/* Replies to finished windows, routes new requests, and enforces the time limits of connections. */
void serve_step(struct serve *serve);
/* Returns when the next step is due (CLOCK_MONOTONIC, ns); 0: now; UINT64_MAX: never. */
uint64_t serve_next_step(const struct serve *serve);

#endif
