/* Sends exports: a queue, one transfer at a time, and retries while the receiver is away.
 *
 * A transfer that may be retried goes back to the front of the queue. The next try follows after a
 * delay: the delay that the receiver requested, at most a minute, or the sender's own, which
 * doubles each time, with jitter. All tries of an export together may take as long as
 * request_timeout_ms(), with the delays between them. An export that is not sent by then stays in
 * the queue, and is begun again, as a new one, after the delay: until it is sent or refused, or
 * until newer exports need its room. Each absence of the receiver is logged once, and so is its
 * return. Context: flush.
 */
#ifndef OTELPROF_SENDER_H
#define OTELPROF_SENDER_H

#include "queue.h"
#include "transport_http.h"

struct sender;

/* Opens a sender. Returns NULL without memory, or if the transport cannot be opened
 * (transport_http.h). */
struct sender *sender_open(const struct capture_api *api);
void sender_close(struct sender *sender);

/* Queues an export. Takes ownership of `bytes`, and compresses them as configured. `samples`: their
 * number, to count losses. */
void sender_add(struct sender *sender, uint8_t *bytes, size_t size, uint64_t samples);

/* Returns the reason why the last transfer failed, in the receiver's or libcurl's words; "" if the
 * transfer succeeded, or if there was none. Valid as long as the sender. */
const char *sender_problem(const struct sender *sender);

/* Advances the current transfer or starts the next. `last`: the process is ending, and does not
 * wait for an absent receiver. A delayed export is then tried at once, without the rest of the
 * sender's own delay; a delay that the receiver requested is kept, and if it passes
 * OTEL_PROFILER_SHUTDOWN_TIMEOUT, all exports are dropped. Returns when to call again
 * (CLOCK_MONOTONIC, nanoseconds); UINT64_MAX: after the next sender_add(); 0: never, because the
 * profiler ends, and no data may be touched any more. */
uint64_t sender_step(struct sender *sender, bool last);

/* Prepares for a change of the program's root: reads the files that later transfers need, and waits
 * for the present transfer. If that transfer takes longer than a tenth of a second, it is
 * cancelled, and the next step begins the export again. */
void sender_pause(struct sender *sender);

#endif
