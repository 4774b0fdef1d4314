#include "sample_table.h"

#include "hash.h"

#include <stdatomic.h>
#include <string.h>

struct record {
    uint32_t next; /* reference of the next record in the bucket */
    uint32_t tid;
    uint64_t hash;
    uint16_t frame_count;
    uint8_t kind;
    uint8_t flags;
    uint32_t copied_bytes;
    uint64_t interval;
    uint32_t context; /* reference of the record of the sample's context; 0: none */
    uint32_t wait;    /* reference of the record of the sample's wait; 0: none */
    union {
        double values[SAMPLE_VALUES];
        struct span_seen seen; /* for a RECORD_CONTEXT: the times of its samples */
    };
    /* if copied_bytes is not 0, REGISTER_COUNT registers and the stack's bytes follow */
    uint64_t frames[];
};

/* Holds references of the records that a sample refers to; 0: none. */
struct kept {
    uint32_t context;
    uint32_t wait;
};

static struct record *record_at(const struct chunk_pool *pool, uint32_t reference) {
    char *const chunk = (char *)chunk_at(pool, reference >> CHUNK_BITS);
    return (struct record *)(chunk + (reference & (CHUNK_BYTES - 1)));
}

static uint32_t *buckets(const struct sample_table *table, const struct chunk_pool *pool) {
    return (uint32_t *)(chunk_at(pool, table->first_chunk) + 1);
}

static uint32_t record_bytes(uint32_t frame_count, const struct stack_copy *copy) {
    uint32_t bytes = (uint32_t)sizeof(struct record) + frame_count * 8;
    if (copy)
        bytes += REGISTER_COUNT * 8 + ((copy->size + 7) & ~7u);
    return bytes;
}

static bool record_is_equal(const struct record *record, const struct sample *sample,
                            struct kept kept, uint64_t hash) {
    return record->hash == hash && record->frame_count == sample->frame_count &&
           record->kind == sample->kind && record->flags == sample->flags &&
           record->tid == sample->tid && record->interval == sample->interval &&
           record->context == kept.context && record->wait == kept.wait &&
           record->copied_bytes == 0 &&
           memcmp(record->frames, sample->frames, sample->frame_count * 8u) == 0;
}

static bool open_table(struct sample_table *table, struct chunk_pool *pool) {
    const uint32_t number = chunk_pool_take(pool, CHUNK_LIMIT);
    if (number == CHUNK_NONE)
        return false;
    table->last_chunk = number;
    table->stack_copies = 0;
    memset(chunk_at(pool, number) + 1, 0, TABLE_BUCKETS * sizeof(uint32_t));
    chunk_at(pool, number)->used += TABLE_BUCKETS * (uint32_t)sizeof(uint32_t);
    /* a jump of the program's leaves a whole table, or none (own_work.h): the compiler moves no
     * store across */
    atomic_signal_fence(memory_order_release);
    table->first_chunk = number;
    return true;
}

/* Finds room for a record in the last chunk, or in another one. Returns the record's reference; 0
 * if there is no room. The caller adds the bytes to the last chunk once the record is filled. */
static uint32_t record_reserve(struct sample_table *table, struct chunk_pool *pool,
                               uint32_t bytes) {
    struct chunk *chunk = chunk_at(pool, table->last_chunk);
    if (chunk->used + bytes > CHUNK_BYTES) {
        const uint32_t number = chunk_pool_take(pool, CHUNK_LIMIT_FURTHER);
        if (number == CHUNK_NONE)
            return 0;
        chunk->next = number;
        table->last_chunk = number;
        chunk = chunk_at(pool, number);
    }
    if (chunk->used + bytes > CHUNK_BYTES)
        return 0;
    return table->last_chunk << CHUNK_BITS | chunk->used;
}

static void record_fill(struct record *record, const struct sample *sample, struct kept kept,
                        uint64_t hash) {
    *record = (struct record){.tid = sample->tid,
                              .hash = hash,
                              .frame_count = (uint16_t)sample->frame_count,
                              .kind = sample->kind,
                              .flags = sample->flags,
                              .interval = sample->interval,
                              .context = kept.context,
                              .wait = kept.wait};
    memcpy(record->frames, sample->frames, sample->frame_count * 8u);
    if (!sample->stack_copy)
        return;
    uint64_t *const registers = record->frames + sample->frame_count;
    record->copied_bytes = sample->stack_copy->size;
    memcpy(registers, sample->stack_copy->registers, REGISTER_COUNT * 8);
    memcpy(registers + REGISTER_COUNT, sample->stack_copy->bytes, sample->stack_copy->size);
}

/* Returns the reference of the sample's record, new or known; 0: no room. */
static uint32_t find_or_insert(struct sample_table *table, struct chunk_pool *pool,
                               const struct sample *sample, struct kept kept) {
    const uint64_t seed = (uint64_t)kept.context << 40 ^ (uint64_t)kept.wait << 28 ^
                          (uint64_t)sample->tid << 16 ^ (uint64_t)sample->kind << 8 ^ sample->flags;
    const uint64_t hash =
        hash_words(hash_word(seed, sample->interval), sample->frames, sample->frame_count);
    uint32_t *const bucket = &buckets(table, pool)[hash % TABLE_BUCKETS];
    for (uint32_t at = sample->stack_copy ? 0 : *bucket; at; at = record_at(pool, at)->next)
        if (record_is_equal(record_at(pool, at), sample, kept, hash))
            return at;

    const uint32_t bytes = record_bytes(sample->frame_count, sample->stack_copy);
    const uint32_t reference = record_reserve(table, pool, bytes);
    if (!reference)
        return 0;
    struct record *const record = record_at(pool, reference);
    record_fill(record, sample, kept, hash);
    record->next = *bucket;
    /* the same for a record */
    atomic_signal_fence(memory_order_release);
    chunk_at(pool, table->last_chunk)->used += bytes;
    *bucket = reference;
    table->stack_copies += sample->stack_copy != NULL;
    return reference;
}

/* Returns the reference of the record with these words, new or known; 0: no room. */
static uint32_t keep_words(struct sample_table *table, struct chunk_pool *pool, uint8_t kind,
                           const void *words, uint32_t count) {
    const struct sample record = {.kind = kind, .frames = words, .frame_count = count};
    return find_or_insert(table, pool, &record, (struct kept){0, 0});
}

/* Stores the context and the wait of a sample. Returns false if there is no room. */
static bool keep_parts(struct sample_table *table, struct chunk_pool *pool,
                       const struct sample *sample, struct kept *kept) {
    const struct sample_context *const context = sample->context;
    const struct wait_detail *const wait = sample->wait;
    *kept = (struct kept){0, 0};
    if (context)
        kept->context = keep_words(table, pool, RECORD_CONTEXT, context, context_words(context));
    if (wait)
        kept->wait = keep_words(table, pool, RECORD_WAIT, wait, wait_words(wait));
    return !(context && !kept->context) && !(wait && !kept->wait);
}

/* Adds a time to a context's record. Kept out of line, because times are rarely wanted. `context`:
 * the record's reference; 0: none. */
__attribute__((noinline)) static void add_seen(const struct chunk_pool *pool, uint32_t context,
                                               const struct span_seen *seen) {
    if (context)
        span_seen_add(&record_at(pool, context)->seen, *seen);
}

uint32_t sample_table_keep(struct sample_table *table, struct chunk_pool *pool,
                           const struct sample *sample) {
    if (table->first_chunk == CHUNK_NONE && !open_table(table, pool))
        return 0;
    struct kept kept;
    if (!keep_parts(table, pool, sample, &kept))
        return 0;
    const uint32_t reference = find_or_insert(table, pool, sample, kept);
    if (!reference)
        return 0;
    if (sample->seen)
        add_seen(pool, kept.context, sample->seen);
    struct record *const record = record_at(pool, reference);
    for (int i = 0; i < SAMPLE_VALUES; i++)
        record->values[i] += sample->values[i];
    /* pairs with the acquire in sample_table_last_cpu(): the helper reads the record */
    if (sample->kind == SAMPLE_CPU && sample->frame_count)
        __atomic_store_n(&table->last_cpu, reference, __ATOMIC_RELEASE);
    return reference;
}

bool sample_table_add(struct sample_table *table, struct chunk_pool *pool,
                      const struct sample *sample) {
    return sample_table_keep(table, pool, sample) != 0;
}

/* Returns the words of the record that a sample refers to; NULL: it refers to no record. */
static const void *record_words_at(const struct chunk_pool *pool, uint32_t reference) {
    return reference ? record_at(pool, reference)->frames : NULL;
}

static void visit_record(const struct chunk_pool *pool, const struct record *record,
                         void (*visit)(void *arg, const struct sample *sample), void *arg) {
    struct stack_copy copy = {.size = record->copied_bytes};
    if (copy.size) {
        const uint64_t *const registers = record->frames + record->frame_count;
        memcpy(copy.registers, registers, sizeof copy.registers);
        copy.bytes = (const uint8_t *)(registers + REGISTER_COUNT);
    }
    struct sample sample = {.kind = record->kind,
                            .flags = record->flags,
                            .tid = record->tid,
                            .interval = record->interval,
                            .context = record_words_at(pool, record->context),
                            .seen =
                                record->context ? &record_at(pool, record->context)->seen : NULL,
                            .wait = record_words_at(pool, record->wait),
                            .frames = record->frames,
                            .frame_count = record->frame_count,
                            .stack_copy = copy.size ? &copy : NULL};
    memcpy(sample.values, record->values, sizeof sample.values);
    visit(arg, &sample);
}

struct sample sample_table_stack_at(const struct chunk_pool *pool, uint32_t reference) {
    const struct record *const record = record_at(pool, reference);
    return (struct sample){.kind = record->kind,
                           .flags = record->copied_bytes ? record->flags | SAMPLE_FLAG_TRUNCATED
                                                         : record->flags,
                           .tid = record->tid,
                           .interval = record->interval,
                           .context = record_words_at(pool, record->context),
                           .frames = record->frames,
                           .frame_count = record->frame_count};
}

static void visit_chunk(const struct chunk_pool *pool, const struct chunk *chunk, uint32_t first,
                        bool names, void (*visit)(void *arg, const struct sample *sample),
                        void *arg) {
    for (uint32_t at = first; at < chunk->used;) {
        const struct record *const record =
            (const struct record *)(const void *)((const char *)chunk + at);
        const bool is_part = record->kind == RECORD_CONTEXT || record->kind == RECORD_WAIT;
        if (!is_part && (record->kind == RECORD_THREAD_NAME) == names)
            visit_record(pool, record, visit, arg);
        const struct stack_copy copy = {.size = record->copied_bytes};
        at += record_bytes(record->frame_count, copy.size ? &copy : NULL);
    }
}

static void visit_table(const struct sample_table *table, const struct chunk_pool *pool, bool names,
                        void (*visit)(void *arg, const struct sample *sample), void *arg) {
    uint32_t first = (uint32_t)sizeof(struct chunk) + TABLE_BUCKETS * (uint32_t)sizeof(uint32_t);
    for (uint32_t at = table->first_chunk; at != CHUNK_NONE; at = chunk_at(pool, at)->next) {
        visit_chunk(pool, chunk_at(pool, at), first, names, visit, arg);
        first = sizeof(struct chunk);
    }
}

void sample_table_drain(struct sample_table *table, struct chunk_pool *pool,
                        void (*visit)(void *arg, const struct sample *sample), void *arg) {
    visit_table(table, pool, true, visit, arg);
    visit_table(table, pool, false, visit, arg);
    for (uint32_t number = table->first_chunk; number != CHUNK_NONE;) {
        const uint32_t next = chunk_at(pool, number)->next;
        chunk_pool_give_back(pool, number);
        number = next;
    }
    *table = (struct sample_table){.first_chunk = CHUNK_NONE};
}
