/* Exports that the program asks for (otelprof_flush), and how exports ended.
 *
 * Requests are numbered. The helper is woken, makes an export of what was recorded up to then, and
 * says up to which number that holds once all of it has left the process or was given up. Who asks
 * may wait for that, for so long as it likes; nobody else waits.
 */
#ifndef OTELPROF_WANTED_EXPORT_H
#define OTELPROF_WANTED_EXPORT_H

#include <stdbool.h>
#include <stdint.h>

/* Asks for an export, and waits for it for at most `timeout_ms`. true: it was made in that time,
 * and no export has failed meanwhile. Context: calm. errno is preserved. */
bool wanted_export_request(uint64_t timeout_ms);

/* How many exports a receiver or a file has taken, and how many failed for good. Context: any. */
uint64_t wanted_export_delivered(void);
uint64_t wanted_export_failed(void);

/* --- for the helper --- */

/* Whether there is a request that it has not noticed. */
bool wanted_export_is_asked(void);

/* capture_api.exports_wanted, exports_made, export_ended. */
uint32_t wanted_export_notice(void);
void wanted_export_is_made(uint32_t number);
void wanted_export_count(bool delivered);

/* In a forked child nobody has asked yet. Context: fork handler. */
void wanted_export_after_fork(void);

#endif
