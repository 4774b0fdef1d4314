/* What is sent when: the queue, one transfer at a time, and retries while the receiver is away.
 *
 * A transfer that may be retried goes back to the front of the queue. It is tried again after a
 * delay, which doubles each time, with jitter, or which the receiver asked for. One export is tried
 * for as long as OTEL_EXPORTER_OTLP_TIMEOUT says; after that it waits in the queue for the next
 * interval. That a receiver is away is logged once, and once more when it is back.
 * Context: flush.
 */
#ifndef OTELPROF_SENDER_H
#define OTELPROF_SENDER_H

#include "queue.h"
#include "transport_http.h"

struct sender;

/* NULL: nothing can be sent (said in the log). */
struct sender *sender_open(const struct capture_api *api);
void sender_close(struct sender *sender);

/* Takes over `bytes`, which are compressed here as configured. */
void sender_add(struct sender *sender, uint8_t *bytes, size_t size, uint64_t samples);

/* Why the last transfer did not arrive, in the receiver's or libcurl's words; "": it did, or there
 * was none. As long as the sender. */
const char *sender_problem(const struct sender *sender);

/* Moves on. `last`: the process is ending, and nobody waits for a receiver that is away: what was
 * put off is tried once more at once, unless the receiver itself asked for more time than the end
 * may take. Returns when to call again (CLOCK_MONOTONIC, nanoseconds); UINT64_MAX: not before
 * something is added; 0: touch nothing any more, the quiesce lock is closed for good. */
uint64_t sender_step(struct sender *sender, bool last);

/* Reads what will be needed if the program changes its root, and comes to a state in which no
 * transfer is under way: one that has not ended within a tenth of a second is broken off and made
 * anew by the next step. */
void sender_pause(struct sender *sender);

#endif
