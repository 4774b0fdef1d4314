/* Makes exports that the program requests (otelprof_flush), and counts how exports ended.
 *
 * Requests are numbered. The helper wakes up, exports all that was recorded up to then, and
 * publishes the number of the last request that is done: its samples have left the process, or were
 * given up. The requesting thread may wait for this number, up to any timeout; no other thread
 * waits.
 */
#ifndef OTELPROF_WANTED_EXPORT_H
#define OTELPROF_WANTED_EXPORT_H

#include <stdbool.h>
#include <stdint.h>

/* Requests an export, and waits at most `timeout_ms` for its end. Returns true if the export was
 * made in that time, and no export has failed meanwhile; false at once if this process has no
 * running helper. Context: calm. errno is preserved. */
bool wanted_export_request(uint64_t timeout_ms);

/* Return the number of exports that a receiver, the file or the console has accepted, and of
 * exports that failed for ever. Context: any. */
uint64_t wanted_export_delivered(void);
uint64_t wanted_export_failed(void);

/* --- for the helper --- */

/* Returns true if there is a request that the helper has not noticed. */
bool wanted_export_is_asked(void);

/* Implement capture_api.lifecycle.exports_wanted, lifecycle.exports_made and
 * counters.export_ended. */
uint32_t wanted_export_notice(void);
void wanted_export_is_made(uint32_t number);
void wanted_export_count(bool delivered);

/* Resets all numbers in a forked child. Context: fork handler. */
void wanted_export_after_fork(void);

#endif
