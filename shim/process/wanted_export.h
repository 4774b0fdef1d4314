/* Makes exports that the program requests (otelprof_flush), and counts how exports ended.
 *
 * Requests are numbered. The helper wakes up, exports all that was recorded up to then, and
 * publishes the number of the last request that is done: all of it has left the process or was
 * given up. The requesting thread may wait for that as long as it likes; no other thread waits.
 */
#ifndef OTELPROF_WANTED_EXPORT_H
#define OTELPROF_WANTED_EXPORT_H

#include <stdbool.h>
#include <stdint.h>

/* Requests an export, and waits for it for at most `timeout_ms`. Returns true if it was made in
 * that time, and no export has failed meanwhile. Context: calm. errno is preserved. */
bool wanted_export_request(uint64_t timeout_ms);

/* Return the number of exports that a receiver or a file has taken, and of those that failed for
 * good. Context: any. */
uint64_t wanted_export_delivered(void);
uint64_t wanted_export_failed(void);

/* --- for the helper --- */

/* Returns true if there is a request that the helper has not noticed. */
bool wanted_export_is_asked(void);

/* capture_api.lifecycle.exports_wanted, lifecycle.exports_made, counters.export_ended. */
uint32_t wanted_export_notice(void);
void wanted_export_is_made(uint32_t number);
void wanted_export_count(bool delivered);

/* Resets all in a forked child. Context: fork handler. */
void wanted_export_after_fork(void);

#endif
