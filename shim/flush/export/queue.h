/* Encoded exports that wait for the receiver: first in, first out, bounded in bytes. When it is
 * full the oldest goes, because the newest says more about now. Context: flush.
 */
#ifndef OTELPROF_QUEUE_H
#define OTELPROF_QUEUE_H

#include <stddef.h>
#include <stdint.h>

struct export {
    struct export *next;
    uint8_t *bytes; /* the body, owned */
    size_t size;
    const char *encoding; /* Content-Encoding, NULL = none */
    uint64_t samples;     /* in it, for the count of what is lost */
};

struct queue {
    struct export *first;
    struct export *last;
    size_t bytes;
    size_t max_bytes;
};

/* Takes over `bytes`. Returns the number of samples that were lost to make room (or to lack of
 * memory). */
uint64_t queue_push(struct queue *queue, uint8_t *bytes, size_t size, const char *encoding,
                    uint64_t samples);

/* Takes the oldest out, the caller's to free with export_free(); NULL: empty. */
struct export *queue_pop(struct queue *queue);

/* Puts back what queue_pop() gave, as the oldest. Returns the samples lost, as queue_push(). */
uint64_t queue_put_back(struct queue *queue, struct export *export);

void export_free(struct export *export);

/* Empties the queue. Returns the number of samples lost. */
uint64_t queue_clear(struct queue *queue);

#endif
