/* What one thread has recorded in one generation: a hash table from (kind, thread, flags,
 * interval, stack, context, wait) to sums, in chunks of the pool.
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

/* A record that carries no sample but the name of the thread `tid`, in two words of `frames`:
 * written when a thread ends, because the kernel forgets the name with it. Visited before all
 * samples. */
enum { RECORD_THREAD_NAME = 100, THREAD_NAME_WORDS = 2 };

/* A record that samples of the table refer to: a context, in the words of `frames`. It is kept
 * once, and not visited by itself. Instead of values it has when its samples were taken. */
enum { RECORD_CONTEXT = 101 };

/* Likewise what samples wait for. */
enum { RECORD_WAIT = 102 };

/* What to add. `frames` is copied. */
struct sample {
    uint8_t kind; /* enum sample_kind, or RECORD_THREAD_NAME */
    uint8_t flags;
    uint32_t tid;
    uint64_t interval;                    /* harvest_sample.interval */
    const struct sample_context *context; /* NULL: none. Copied */
    const struct span_seen *seen;         /* when it was taken; visited: all of its context. NULL:
                                             nobody asks, or there is no context. Copied */
    const struct wait_detail *wait;       /* likewise */
    const uint64_t *frames;
    uint32_t frame_count;
    double values[SAMPLE_VALUES];        /* of harvest_sample */
    const struct stack_copy *stack_copy; /* NULL mostly; such samples are never merged */
};

enum {
    TABLE_BUCKETS = 512,
    STACK_COPY_BYTES = 8192,     /* of the stack, at most: fits into a chunk with its record */
    STACK_COPIES_PER_TABLE = 64, /* more would only cost memory: they are listed as truncated */
};

/* Adds a sample or adds to an equal one. false: no memory within the bound. Cost: about 0.1 µs, and
 * some 30 ns more with a context.
 * Context: the owner. Async-signal-safe: yes. */
bool sample_table_add(struct sample_table *table, struct chunk_pool *pool,
                      const struct sample *sample);

/* As sample_table_add(), and where it is from now on: its reference. 0: no memory. */
uint32_t sample_table_keep(struct sample_table *table, struct chunk_pool *pool,
                           const struct sample *sample);

/* The record of the CPU sample that was added last; 0: none since the table was drained. Context:
 * the helper, while the owner goes on adding. */
static inline uint32_t sample_table_last_cpu(const struct sample_table *table) {
    return __atomic_load_n(&table->last_cpu, __ATOMIC_ACQUIRE);
}

/* The stack of a record, whose it is, and its context; its values are not there. It stays until its
 * table is drained. Context: who drains. */
struct sample sample_table_stack_at(const struct chunk_pool *pool, uint32_t reference);

/* Calls `visit` for each record, names first, then gives all memory back. Context: the helper. */
void sample_table_drain(struct sample_table *table, struct chunk_pool *pool,
                        void (*visit)(void *arg, const struct sample *sample), void *arg);

#endif
