#include "thread_table.h"

#include "charged_time.h"
#include "kernel/profiler_memory.h"
#include "kernel/wait.h"

#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { HANDSHAKE_TRIES = 1000 };

__thread struct thread_local_state profiler_tls;

static size_t thread_segment_bytes(const struct thread_table *table) {
    return whole_pages(table->stride * THREADS_PER_SEGMENT);
}

void thread_table_init(struct thread_table *table, uint32_t max_depth) {
    table->max_depth = max_depth;
    table->stride = (sizeof(struct thread_state) + max_depth * sizeof(uint64_t) +
                     sizeof(struct sample_context) + 63) /
                    64 * 64;
    /* writes the page before any thread reads it: a read would map the zero page, and the later
     * write would fault again */
    atomic_store_explicit(&table->segments[0], 0, memory_order_relaxed);
}

size_t thread_table_first_bytes(const struct thread_table *table) {
    return thread_segment_bytes(table) + CHUNK_SEGMENT_BYTES;
}

struct thread_state *thread_table_at(const struct thread_table *table, uint32_t index) {
    /* pairs with the exchange in slot_segment_ready() */
    const uintptr_t segment =
        atomic_load_explicit(&table->segments[index / THREADS_PER_SEGMENT], memory_order_acquire);
    if (!segment)
        return NULL;
    return (struct thread_state *)(segment + (index % THREADS_PER_SEGMENT) * table->stride);
}

/* --- slots --- */

static bool slot_segment_ready(struct thread_table *table, uint32_t index) {
    _Atomic uintptr_t *const segment = &table->segments[index / THREADS_PER_SEGMENT];
    if (atomic_load_explicit(segment, memory_order_relaxed))
        return true;
    void *const memory = profiler_memory_part(thread_segment_bytes(table));
    if (!memory)
        return false;
    uintptr_t expected = 0;
    /* pairs with the acquire in thread_table_at() */
    if (!atomic_compare_exchange_strong_explicit(segment, &expected, (uintptr_t)memory,
                                                 memory_order_release, memory_order_relaxed))
        profiler_memory_unmap(memory, thread_segment_bytes(table));
    return true;
}

/* --- lists of slots: stacks whose head carries a tag against the ABA problem (Treiber 1986) --- */

/* Takes the slot that was pushed last; NULL: the list is empty. Pairs with the release in
 * slot_push(): the writes of the slot's former owner are seen. */
static struct thread_state *slot_pop(const struct thread_table *table, _Atomic uint64_t *list) {
    uint64_t head = atomic_load_explicit(list, memory_order_acquire);
    while ((uint32_t)head != 0) {
        struct thread_state *const thread = thread_table_at(table, (uint32_t)head - 1);
        const uint32_t next = __atomic_load_n(&thread->next_free, __ATOMIC_RELAXED);
        const uint64_t replacement = ((head >> 32) + 1) << 32 | next;
        if (atomic_compare_exchange_weak_explicit(list, &head, replacement, memory_order_acquire,
                                                  memory_order_acquire))
            return thread;
    }
    return NULL;
}

static void slot_push(_Atomic uint64_t *list, struct thread_state *thread) {
    uint64_t head = atomic_load_explicit(list, memory_order_relaxed);
    uint64_t replacement;
    do {
        __atomic_store_n(&thread->next_free, (uint32_t)head, __ATOMIC_RELAXED);
        replacement = ((head >> 32) + 1) << 32 | (thread->index + 1);
        /* pairs with the acquire in slot_pop() */
    } while (!atomic_compare_exchange_weak_explicit(list, &head, replacement, memory_order_release,
                                                    memory_order_relaxed));
}

static struct thread_state *slot_take_fresh(struct thread_table *table) {
    uint32_t index = atomic_load_explicit(&table->fresh, memory_order_relaxed);
    while (index < THREAD_SEGMENTS * THREADS_PER_SEGMENT) {
        if (!slot_segment_ready(table, index))
            return NULL;
        /* pairs with the acquire in thread_table_count(): the segment is there */
        if (!atomic_compare_exchange_weak_explicit(&table->fresh, &index, index + 1,
                                                   memory_order_release, memory_order_relaxed))
            continue;
        struct thread_state *const thread = thread_table_at(table, index);
        thread->index = index;
        thread->frames = (uint64_t *)(thread + 1);
        thread->context = (struct sample_context *)(thread->frames + table->max_depth);
        return thread;
    }
    return NULL;
}

struct thread_state *thread_table_take(struct thread_table *table) {
    struct thread_state *thread = slot_pop(table, &table->free_head);
    if (!thread)
        thread = slot_take_fresh(table);
    if (!thread) {
        atomic_fetch_add_explicit(&table->unregistered, 1, memory_order_relaxed);
        return NULL;
    }
    atomic_store(&thread->retired, false);
    thread->sampled = false;
    thread->program_context = NULL;
    atomic_store(&thread->timer, -1); /* the value of TIMER_NONE */
    thread->signals_given_up = false;
    thread->blocked_counted = false;
    atomic_store(&thread->by_libc_signal, false);
    atomic_store(&thread->events, 0);
    charge_begin(thread);
    wall_clear(&thread->wall);
    thread->samples = 0;
    thread->last_cpu_nano = 0;
    thread->start_routine = NULL;
    thread->contention = (struct contention_rate){.interval = 0};
    return thread;
}

void thread_table_give_back(struct thread_table *table, struct thread_state *thread) {
    /* relaxed: a thread that finds 0 reads nothing else of the slot */
    atomic_store_explicit(&thread->tid, 0, memory_order_relaxed);
    slot_push(&table->free_head, thread);
}

void thread_table_retire(struct thread_table *table, struct thread_state *thread) {
    atomic_store(&thread->retired, true);
    slot_push(&table->retired_head, thread);
}

/* Queries the kernel. A new thread may already have the id: then a later check finds that the slot
 * is free. */
bool thread_has_ended(const struct thread_state *thread) {
    const int saved = errno;
    const uint32_t tid = atomic_load_explicit(&thread->tid, memory_order_relaxed);
    const bool gone = syscall(SYS_tgkill, getpid(), tid, 0) != 0 && errno == ESRCH;
    errno = saved;
    return gone;
}

void thread_table_sweep(struct thread_table *table, uint32_t limit,
                        void (*gone)(struct thread_state *thread)) {
    uint32_t alive = 0; /* index + 1 of the first slot that stays in the list */
    for (; limit > 0; limit--) {
        struct thread_state *const thread = slot_pop(table, &table->retired_head);
        if (!thread)
            break;
        if (thread_has_ended(thread)) {
            gone(thread);
            thread_table_give_back(table, thread);
        } else {
            thread->next_free = alive;
            alive = thread->index + 1;
        }
    }
    while (alive) {
        struct thread_state *const thread = thread_table_at(table, alive - 1);
        alive = thread->next_free;
        thread_table_retire(table, thread);
    }
}

bool thread_table_is_emptied(struct thread_table *table) {
    struct thread_state *const first = thread_table_at(table, 0);
    /* writes to the page without a change before it is read, because the kernel maps a page twice
     * that is read first and written later */
    if (first)
        atomic_fetch_or_explicit(&first->tid, 0, memory_order_relaxed);
    return first && !first->frames;
}

void thread_table_reset(struct thread_table *table) {
    chunk_pool_reset(&table->pool);
    for (uint32_t i = 0; i < THREAD_SEGMENTS && atomic_load(&table->segments[i]); i++)
        profiler_memory_reset_in_child((void *)atomic_load(&table->segments[i]),
                                       thread_segment_bytes(table));
    atomic_store(&table->free_head, 0);
    atomic_store(&table->retired_head, 0);
    atomic_store(&table->fresh, 0);
    atomic_store(&table->unregistered, 0);
    atomic_store(&table->is_closed, false);
}

/* Detects emptied slots: the first slot was taken at the start, and a slot that was taken has
 * `frames`. */
bool thread_table_is_wiped(const struct thread_table *table) {
    return thread_table_count(table) > 0 && !thread_table_at(table, 0)->frames;
}

/* --- the end --- */

enum { CLOSE_ROUNDS = 20000 }; /* waits at most so many rounds of wait.h */

/* Pairs with thread_begin_sample() and thread_end_sample(). */
static bool no_thread_samples(void *context) {
    const struct thread_table *const table = context;
    for (uint32_t i = 0; i < thread_table_count(table); i++)
        if (atomic_load_explicit(&thread_table_at(table, i)->samples_now, memory_order_seq_cst))
            return false;
    return true;
}

void thread_table_close(struct thread_table *table) {
    /* pairs with thread_begin_sample(): changes, then checks */
    atomic_store_explicit(&table->is_closed, true, memory_order_seq_cst);
    (void)wait_for_rounds(no_thread_samples, table, CLOSE_ROUNDS);
}

/* --- generations --- */

bool thread_record(struct thread_table *table, struct thread_state *thread,
                   const struct sample *sample) {
    uint32_t generation;
    do { /* repeats only if the helper flips in between: once per harvest */
        generation = atomic_load_explicit(&thread->generation, memory_order_relaxed);
        /* pairs with flip_generation(): announces, then checks again */
        atomic_store_explicit(&thread->using, 1 + generation, memory_order_seq_cst);
    } while (atomic_load_explicit(&thread->generation, memory_order_seq_cst) != generation);
    const bool recorded = sample_table_add(&thread->tables[generation], &table->pool, sample);
    /* pairs with the acquire in flip_generation() */
    atomic_store_explicit(&thread->using, 0, memory_order_release);
    return recorded;
}

/* Returns the generation that only the helper uses now, or -1 if the owner is still in that
 * generation. */
static int flip_generation(struct thread_state *thread) {
    const uint32_t old = atomic_load_explicit(&thread->generation, memory_order_relaxed);
    /* pairs with thread_record(): changes, then checks */
    atomic_store_explicit(&thread->generation, 1 - old, memory_order_seq_cst);
    for (int i = 0; i < HANDSHAKE_TRIES; i++) {
        if (atomic_load_explicit(&thread->using, memory_order_seq_cst) != 1 + old)
            return (int)old;
        sched_yield();
    }
    return -1;
}

static bool has_records(const struct thread_state *thread, uint32_t generation) {
    return __atomic_load_n(&thread->tables[generation].first_chunk, __ATOMIC_RELAXED) != CHUNK_NONE;
}

void thread_table_harvest(struct thread_table *table,
                          void (*visit)(void *arg, const struct sample *sample), void *arg) {
    const uint32_t count = thread_table_count(table);
    for (uint32_t i = 0; i < count; i++) {
        struct thread_state *const thread = thread_table_at(table, i);
        const uint32_t now = atomic_load_explicit(&thread->generation, memory_order_relaxed);
        /* first visits the records that an earlier harvest had to leave; pairs with the stores of
         * `using` in thread_record() */
        if (has_records(thread, 1 - now) &&
            atomic_load_explicit(&thread->using, memory_order_seq_cst) != 1 + (1 - now))
            sample_table_drain(&thread->tables[1 - now], &table->pool, visit, arg);
        if (!has_records(thread, now) || has_records(thread, 1 - now))
            continue;
        const int old = flip_generation(thread);
        if (old >= 0)
            sample_table_drain(&thread->tables[old], &table->pool, visit, arg);
    }
}

struct thread_samples thread_table_samples(const struct thread_table *table) {
    struct thread_samples all = {0};
    for (uint32_t i = 0; i < thread_table_count(table); i++) {
        const struct thread_state *const thread = thread_table_at(table, i);
        all.recorded += atomic_load_explicit(&thread->recorded, memory_order_relaxed);
        all.linked += atomic_load_explicit(&thread->linked, memory_order_relaxed);
        all.foreign_nano += atomic_load_explicit(&thread->foreign_nano, memory_order_relaxed);
    }
    return all;
}

void thread_table_dropped(const struct thread_table *table, uint64_t counts[DROP_REASON_COUNT]) {
    const uint32_t threads = thread_table_count(table);
    for (uint32_t i = 0; i < threads; i++) {
        const struct thread_state *const thread = thread_table_at(table, i);
        for (int reason = 0; reason < DROP_REASON_COUNT; reason++)
            counts[reason] += atomic_load_explicit(&thread->dropped[reason], memory_order_relaxed);
    }
    counts[DROP_NO_THREAD] += atomic_load_explicit(&table->unregistered, memory_order_relaxed);
}
