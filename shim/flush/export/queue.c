#include "queue.h"

#include <stdlib.h>

void export_free(struct export *export) {
    if (!export)
        return;
    free(export->bytes);
    free(export);
}

struct export *queue_pop(struct queue *queue) {
    struct export *const oldest = queue->first;
    if (!oldest)
        return NULL;
    queue->first = oldest->next;
    if (!queue->first)
        queue->last = NULL;
    queue->bytes -= oldest->size;
    oldest->next = NULL;
    return oldest;
}

static uint64_t drop_oldest(struct queue *queue) {
    struct export *const oldest = queue_pop(queue);
    const uint64_t samples = oldest->samples;
    export_free(oldest);
    return samples;
}

static uint64_t queue_make_room(struct queue *queue, size_t size) {
    uint64_t lost = 0;
    while (queue->first && queue->bytes + size > queue->max_bytes)
        lost += drop_oldest(queue);
    return lost;
}

uint64_t queue_push(struct queue *queue, uint8_t *bytes, size_t size, const char *encoding,
                    uint64_t samples) {
    struct export *const export = calloc(1, sizeof *export);
    if (!export || size > queue->max_bytes) {
        free(bytes);
        free(export);
        return samples;
    }
    *export = (struct export){NULL, bytes, size, encoding, samples, 0};
    const uint64_t lost = queue_make_room(queue, size);
    if (queue->last)
        queue->last->next = export;
    else
        queue->first = export;
    queue->last = export;
    queue->bytes += size;
    return lost;
}

uint64_t queue_put_back(struct queue *queue, struct export *export) {
    if (queue->bytes + export->size >
        /* as the oldest export, it is the one to drop if newer ones leave it no room */
        queue->max_bytes) {
        const uint64_t lost = export->samples;
        export_free(export);
        return lost;
    }
    export->next = queue->first;
    queue->first = export;
    if (!queue->last)
        queue->last = export;
    queue->bytes += export->size;
    return 0;
}

uint64_t queue_clear(struct queue *queue) {
    uint64_t lost = 0;
    while (queue->first)
        lost += drop_oldest(queue);
    return lost;
}
