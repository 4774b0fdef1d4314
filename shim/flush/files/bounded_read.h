/* How much libcurl reads in one turn.
 *
 * It goes on for as long as something is there to be read: a peer that sends faster than it reads
 * (HTTP/2 frames that carry nothing, for one) keeps it inside for ever, and with it the quiesce
 * lock. So its calls of recv() come to us: in one turn they get a bounded number of bytes, and none
 * where somebody waits for the lock; then there is nothing to be read, for this turn.
 * Only a libcurl that came with the exporter: one that the program had before is the program's.
 * Calls of other threads go through as they are. Context: flush.
 */
#ifndef OTELPROF_BOUNDED_READ_H
#define OTELPROF_BOUNDED_READ_H

#include <stdbool.h>

/* false: libcurl is the program's, or calls something else. */
bool bounded_read_take_over(void);

/* Around a turn on the calling thread. `is_awaited`: whether it is to end soon. */
void bounded_read_begin(bool (*is_awaited)(void));
void bounded_read_end(void);

#endif
