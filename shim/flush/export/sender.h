/* Sends exports: a queue, one transfer at a time, and retries while the receiver is away.
 *
 * A transfer that may be retried goes back to the front of the queue. The next try follows after a
 * delay, which doubles each time, with jitter, or which the receiver asked for. One export is tried
 * for as long as OTEL_EXPORTER_OTLP_TIMEOUT permits; after that it waits in the queue for the next
 * interval. The receiver's absence is logged once, and so is its return. Context: flush.
 */
#ifndef OTELPROF_SENDER_H
#define OTELPROF_SENDER_H

#include "queue.h"
#include "transport_http.h"

struct sender;

/* Opens a sender. Returns NULL, and logs why, if nothing can be sent. */
struct sender *sender_open(const struct capture_api *api);
void sender_close(struct sender *sender);

/* Takes ownership of `bytes` and compresses them as configured. */
void sender_add(struct sender *sender, uint8_t *bytes, size_t size, uint64_t samples);

/* Returns the reason why the last transfer failed, in the receiver's or libcurl's words; "" if it
 * succeeded, or if there was no transfer. Valid as long as the sender. */
const char *sender_problem(const struct sender *sender);

/* Advances the current transfer or starts the next. `last`: the process is ending, and does not
 * wait for an absent receiver: a delayed export is tried once more at once, unless the receiver has
 * requested a delay beyond the end. Returns when to call again (CLOCK_MONOTONIC, nanoseconds);
 * UINT64_MAX: after the next sender_add(); 0: never, because the quiesce lock is closed for ever,
 * and no data may be touched any more. */
uint64_t sender_step(struct sender *sender, bool last);

/* Prepares for a change of the program's root: reads the files that later transfers need, and waits
 * for the present transfer. If that takes longer than a tenth of a second, the transfer is
 * cancelled, and the next step starts it again. */
void sender_pause(struct sender *sender);

#endif
