/* Stores the samples that one thread has recorded in one generation: a hash table from (kind,
 * thread, flags, interval, stack, context, wait) to sums, in chunks of the pool.
 *
 * Only the owning thread writes and only the helper reads; the generations of thread_table.h keep
 * the two apart. So no access here is atomic, except that of `last_cpu`, which the helper reads
 * while the owner adds. Buckets hold references to records in the same chunks: chunk number <<
 * CHUNK_BITS | offset. A record never moves; an empty table owns no memory.
 */
#ifndef OTELPROF_SAMPLE_TABLE_H
#define OTELPROF_SAMPLE_TABLE_H

#include "chunk_pool.h"
#include "harvest.h"

#include <stdbool.h>

struct sample_table {
    uint32_t first_chunk; /* the chunk with the buckets; CHUNK_NONE: the table is empty */
    uint32_t last_chunk;
    uint32_t stack_copies; /* number of records with a copy of the stack */
    /* reference of the record of the last CPU sample with frames; 0: there is none */
    uint32_t last_cpu;
};

/* Marks a record that is no sample but the name of the thread `tid`, in two words of `frames`. A
 * thread writes it when it ends, because the kernel then forgets the name. A drain visits these
 * records before all samples. */
enum { RECORD_THREAD_NAME = 100, THREAD_NAME_WORDS = 2 };

/* Marks a record that is a context, to which samples of the table refer. Its `frames` hold the
 * words of the context, and instead of values it has the times of these samples. Each context is
 * stored once, and not visited by itself. */
enum { RECORD_CONTEXT = 101 };

/* Marks a record that is the wait of samples, stored like a RECORD_CONTEXT. */
enum { RECORD_WAIT = 102 };

/* Describes a sample to add. The table copies `frames`. */
struct sample {
    uint8_t kind; /* enum sample_kind, or RECORD_THREAD_NAME */
    uint8_t flags;
    uint32_t tid;
    uint64_t interval;                    /* harvest_sample.interval */
    const struct sample_context *context; /* the table copies it; NULL: none */
    /* when added: time of the sample, copied; when visited: times of its whole context. NULL: not
     * wanted, or the sample has no context */
    const struct span_seen *seen;
    const struct wait_detail *wait; /* the table copies it; NULL: none */
    const uint64_t *frames;
    uint32_t frame_count;
    double values[SAMPLE_VALUES];        /* meaning as in harvest_sample */
    const struct stack_copy *stack_copy; /* mostly NULL; a sample with a copy is never merged */
};

enum {
    TABLE_BUCKETS = 512,
    /* largest copy of a stack: the copy fits into a chunk with its record */
    STACK_COPY_BYTES = 8192,
    STACK_COPIES_PER_TABLE =
        /* so many samples of a generation have a copy; further ones would only cost memory, and are
         * recorded as truncated */
    64,
};

/* Adds a sample, or adds its values to those of an equal one. Returns false if there is no memory
 * within the bound. Cost: about 0.1 µs, and some 30 ns more with a context. Context: the owner.
 * Async-signal-safe: yes. */
bool sample_table_add(struct sample_table *table, struct chunk_pool *pool,
                      const struct sample *sample);

/* Adds a sample as sample_table_add() does, and returns its reference. 0: no memory. */
uint32_t sample_table_keep(struct sample_table *table, struct chunk_pool *pool,
                           const struct sample *sample);

/* Returns the reference of the CPU sample with frames that was added last; 0: there was none since
 * the table was drained. Context: the helper, while the owner continues to add. */
static inline uint32_t sample_table_last_cpu(const struct sample_table *table) {
    /* pairs with the release in sample_table_keep() */
    return __atomic_load_n(&table->last_cpu, __ATOMIC_ACQUIRE);
}

/* Returns the stack of a record, its thread and its context, but not its values. They are valid
 * until the table is drained. Context: the thread that drains the table. */
struct sample sample_table_stack_at(const struct chunk_pool *pool, uint32_t reference);

/* Calls `visit` for each record of a thread's name, then for each sample; then frees all memory.
 * Context: the helper. */
void sample_table_drain(struct sample_table *table, struct chunk_pool *pool,
                        void (*visit)(void *arg, const struct sample *sample), void *arg);

#endif
