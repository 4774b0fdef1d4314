/* Bounds how much libcurl reads in one turn.
 *
 * libcurl reads as long as there is data. So a peer that sends faster than libcurl reads (for
 * example HTTP/2 frames without content) would keep the helper inside libcurl for ever, under the
 * quiesce lock. Therefore libcurl's calls of recv() are redirected: in one turn these calls get a
 * bounded number of bytes, and none while another thread waits for the lock; after that they report
 * EAGAIN until the next turn. Only a libcurl that came with the exporter is changed, not one that
 * the program had before. Calls of other threads pass unchanged. Context: flush.
 */
#ifndef OTELPROF_BOUNDED_READ_H
#define OTELPROF_BOUNDED_READ_H

#include <stdbool.h>

/* Redirects libcurl's recv(). Returns false if libcurl is the program's or the bundle's, calls
 * another function, or cannot be changed.
 */
bool bounded_read_take_over(void);

/* Begin and end a turn on the calling thread. `is_awaited` returns true if the turn must end soon.
 */
void bounded_read_begin(bool (*is_awaited)(void));
void bounded_read_end(void);

#endif
