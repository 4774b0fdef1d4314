/* The samples that one thread has recorded in one generation: a hash table from (kind, thread,
 * flags, interval, stack, context, wait) to sums, in chunks of the pool.
 *
 * Only the owning thread writes, only the helper reads, and the generations of thread_table.h keep
 * them apart, so nothing here is atomic. Buckets hold references to records in the same chunks:
 * chunk number << CHUNK_BITS | offset. A record never moves; an empty table owns no memory.
 */
#ifndef OTELPROF_SAMPLE_TABLE_H
#define OTELPROF_SAMPLE_TABLE_H

#include "chunk_pool.h"
#include "harvest.h"

#include <stdbool.h>

struct sample_table {
    uint32_t first_chunk; /* holds the buckets; CHUNK_NONE: empty */
    uint32_t last_chunk;
    uint32_t stack_copies; /* records with a copy of the stack */
    uint32_t last_cpu;     /* the record of the last CPU sample with frames; 0: there is none */
};

/* A record that is no sample but the name of the thread `tid`, in two words of `frames`. A thread
 * writes it when it ends, because the kernel forgets the name with it. Visited before all
 * samples. */
enum { RECORD_THREAD_NAME = 100, THREAD_NAME_WORDS = 2 };

/* A record that samples of the table refer to: a context, in the words of `frames`. It is stored
 * once, and not visited by itself. Instead of values it has the times of its samples. */
enum { RECORD_CONTEXT = 101 };

/* Likewise the wait of samples. */
enum { RECORD_WAIT = 102 };

/* A sample to add. `frames` is copied. */
struct sample {
    uint8_t kind; /* enum sample_kind, or RECORD_THREAD_NAME */
    uint8_t flags;
    uint32_t tid;
    uint64_t interval;                    /* harvest_sample.interval */
    const struct sample_context *context; /* NULL: none. Copied */
    const struct span_seen *seen;   /* when it was taken; when visited: times of its whole context.
                                       NULL: not wanted, or no context. Copied */
    const struct wait_detail *wait; /* likewise */
    const uint64_t *frames;
    uint32_t frame_count;
    double values[SAMPLE_VALUES];        /* of harvest_sample */
    const struct stack_copy *stack_copy; /* mostly NULL; such samples are never merged */
};

enum {
    TABLE_BUCKETS = 512,
    STACK_COPY_BYTES = 8192, /* of the stack, at most: fits into a chunk with its record */
    STACK_COPIES_PER_TABLE =
        64, /* further ones would only cost memory: they are recorded as truncated */
};

/* Adds a sample, or adds its values to an equal one. Returns false if there is no memory within the
 * bound. Cost: about 0.1 µs, and some 30 ns more with a context.
 * Context: the owner. Async-signal-safe: yes. */
bool sample_table_add(struct sample_table *table, struct chunk_pool *pool,
                      const struct sample *sample);

/* Adds a sample as sample_table_add() does, and returns its reference. 0: no memory. */
uint32_t sample_table_keep(struct sample_table *table, struct chunk_pool *pool,
                           const struct sample *sample);

/* Returns the record of the CPU sample that was added last; 0: none since the table was drained.
 * Context: the helper, while the owner continues to add. */
static inline uint32_t sample_table_last_cpu(const struct sample_table *table) {
    return __atomic_load_n(&table->last_cpu, __ATOMIC_ACQUIRE);
}

/* Returns the stack of a record, its thread and its context, but not its values. It is valid until
 * its table is drained. Context: the thread that drains the table. */
struct sample sample_table_stack_at(const struct chunk_pool *pool, uint32_t reference);

/* Calls `visit` for each record, names first, then gives all memory back. Context: the helper. */
void sample_table_drain(struct sample_table *table, struct chunk_pool *pool,
                        void (*visit)(void *arg, const struct sample *sample), void *arg);

#endif
