/* Holds encoded exports until the receiver takes them: first in, first out, bounded in bytes. A
 * full queue drops the oldest exports, because newer ones are more relevant. Context: flush.
 */
#ifndef OTELPROF_QUEUE_H
#define OTELPROF_QUEUE_H

#include <stddef.h>
#include <stdint.h>

struct export {
    struct export *next;
    uint8_t *bytes; /* body; the export owns it */
    size_t size;
    const char *encoding; /* Content-Encoding; NULL: none */
    uint64_t samples;     /* number of samples, to count losses */
    uint64_t until_nano;  /* CLOCK_MONOTONIC: end of the time for its tries; 0: not begun */
};

struct queue {
    struct export *first;
    struct export *last;
    size_t bytes;
    size_t max_bytes;
};

/* Appends an export as the newest, and takes ownership of `bytes`. `encoding`: a constant. Returns
 * the number of samples dropped: those of the oldest exports, to make room; or all `samples`, if
 * the export is larger than the queue or memory is short. */
uint64_t queue_push(struct queue *queue, uint8_t *bytes, size_t size, const char *encoding,
                    uint64_t samples);

/* Removes and returns the oldest export; the caller frees it with export_free(). NULL: the queue is
 * empty. */
struct export *queue_pop(struct queue *queue);

/* Puts an export from queue_pop() back as the oldest, and takes ownership of it. Returns the number
 * of samples dropped: all of this export if it does not fit any more, otherwise 0. */
uint64_t queue_put_back(struct queue *queue, struct export *export);

void export_free(struct export *export);

/* Empties the queue. Returns the number of samples dropped. */
uint64_t queue_clear(struct queue *queue);

#endif
