/* Lists the profiled threads, and defines the protocol by which a thread records without ever
 * waiting.
 *
 * A thread's state is a slot of this table, which the thread reaches by one initial-exec TLS
 * pointer. The thread records into its own sample table of the current generation; the helper flips
 * the generation and reads the old table once its owner is out of it. This is a Dekker-style
 * handshake: the owner announces the generation that it uses and then checks it again, and the
 * helper changes the generation and then checks if it is announced. The owner never waits; the
 * helper may skip a thread until the next harvest.
 *
 * The life of a slot: the creator of a thread takes it, the new thread begins it (thread_begin) and
 * retires it after its start routine, and a sweep gives it back when the kernel no longer knows the
 * thread. So the slot belongs to the thread until its last destructor has run, although no call
 * notifies the profiler of that. A slot is reused as soon as its thread is gone, together with its
 * table of records that are not harvested yet: records carry their thread's id and so stay
 * distinct. Memory follows the number of live threads, not of all threads that ever ran.
 */
#ifndef OTELPROF_THREAD_TABLE_H
#define OTELPROF_THREAD_TABLE_H

#include "chunk_pool.h"
#include "harvest.h"
#include "sample_table.h"
#include "sampling_cost.h"
#include "unwind/unwind.h"
#include "wait_slot.h"
#include "wall_time.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { THREAD_NAME_BYTES = 16, THREAD_SEGMENTS = 1024, THREADS_PER_SEGMENT = 64 };

/* Holds the present sampling rate of a thread's contentions: wait/contention.h. Only that thread
 * reads and writes it. Initially all zero. */
struct contention_rate {
    uint64_t interval; /* ns of delay that a sample counts as: the settings' interval, */
    uint64_t bound;    /* a longer interval that keeps samples few; 0: no bound */
    uint64_t since_ns; /* CLOCK_MONOTONIC: when `samples` was last reset */
    uint32_t samples;  /* number of samples since `since_ns` */
};

struct thread_state {
    _Atomic uint32_t tid; /* 0: no live thread in this slot */
    uint32_t index;
    uint32_t next_free;
    /* thread_table_retire() was called; another thread may have the id by now */
    _Atomic bool retired;
    bool sampled; /* at least one record has the thread's own id */
    /* the thread has no signal stack of the profiler: see cpu_timers.h */
    bool signals_given_up;
    /* the thread blocks every signal, and DROP_SIGNAL_BLOCKED counts it: masked_threads.h */
    bool blocked_counted;
    /* the thread's timer raises libc's signal, because the thread blocks ours: masked_threads.h */
    _Atomic bool by_libc_signal;
    _Atomic int timer; /* kernel timer id, or TIMER_* (cpu_timers.h) */
    uint32_t samples;  /* number of samples taken; wraps */
    /* period of the thread's timer; longer than configured if samples cost too much */
    uint64_t period_nano;
    _Atomic uint32_t generation;
    _Atomic uint32_t using;   /* 0, or 1 + the generation that the owner is in */
    _Atomic bool samples_now; /* the owner is taking a sample, and may make system calls for it */
    uintptr_t work_frame;     /* frame in which the owner's last work began: own_work.h */
    uintptr_t work_return;    /* the return address of that frame */
    /* the count in the stack store that the owner's work has incremented; NULL: none */
    _Atomic uint32_t *entered_users;
    struct sample_table tables[2];
    struct stack_range stack;
    size_t stack_size;       /* size requested at pthread_create */
    uint64_t last_cpu_nano;  /* charged CPU time at the thread's last recorded sample */
    _Atomic uint64_t charge; /* state of the charged CPU time: charged_time.h */
    uint64_t random;
    uint64_t gap_interval; /* mean of the distribution that the present gap was drawn from */
    uint64_t beyond;       /* bytes from the countdown's threshold to the next sample */
    /* bits COUNTDOWN_*; while one is set, alloc_left is no gap (countdown.h) */
    _Atomic uint32_t events;
    uint32_t cpu_settings;   /* version of the settings that the timer follows */
    uint32_t alloc_settings; /* version of the settings that the countdown follows */
    _Atomic uint64_t dropped[DROP_REASON_COUNT]; /* drops of all threads that had this slot */
    /* number of samples of all threads that had this slot */
    _Atomic uint64_t recorded;
    _Atomic uint64_t linked;       /* number of recorded samples that have a span */
    _Atomic uint64_t foreign_nano; /* CPU time of samples that are counted as DROP_FOREIGN_STACK */
    void *(*start_routine)(void *);
    void *start_argument;
    struct program_context
        *program_context;       /* context that the program has set (otelprof.h); NULL: none */
    uint64_t *frames;           /* room for the configured depth, after this struct */
    struct wait_slot wait_slot; /* the call that the thread may be blocked in */
    struct wall_time wall;      /* account of its time by states */
    struct contention_rate contention;
    /* costs of all threads that had this slot, together */
    struct sampling_count costs[SAMPLING_WORKS];
    uint32_t last_stack; /* used by the helper alone: last_stacks.h */
    uintptr_t pointer;   /* the thread pointer of this thread */
    /* room for the context of one sample, after the frames */
    struct sample_context *context;
};

/* Bounds the stack, in bytes, that the profiler's signal handler uses;
 * test/integration/test_stack_use.py checks this bound. */
enum { SAMPLE_STACK_BYTES = 4096 };

/* Holds all static TLS that the preloaded object uses (at most 64 bytes: glibc reserves little for
 * objects beyond the executable's own). */
struct thread_local_state {
    uint64_t alloc_left; /* bytes until an allocation takes the slow path: countdown.h */
    struct thread_state *thread;
    struct stack_range stack; /* the thread's stack; also here, because a fork clears `thread` */
    /* the profiler's signal stack; a forked child keeps it */
    struct profiler_signal_stack *signal_stack;
    uint32_t countdowns; /* number of times that a countdown began; wraps */
    /* > 0: capture code runs on this thread, so no sample may begin */
    uint32_t inside;
    /* number of the signal that the profiler has blocked around a fork */
    uint8_t blocked_for_fork;
    bool modules_locked; /* the profiler holds the lock of `modules` around a fork */
    uint8_t unloads;     /* number of dlclose() calls that this thread is inside */
    /* this is the helper, or a thread of its libraries: its work is not the application's */
    bool is_profiler_thread;
    /* the loader was in use when this thread began to fork: loader_state.h */
    bool loader_in_use;
    /* the profiler holds the lock of registered_tables.h around a fork */
    bool tables_locked;
    /* number of hooks of hooks/generated_code.c that the thread is inside */
    uint8_t registering;
    uint8_t list_iterations : 7;   /* number of iterations that the thread is inside */
    bool list_iterations_held : 1; /* the profiler blocks iterations around a fork */
    struct program_context
        *program_context; /* same as thread->program_context; here because a fork clears `thread` */
};
/* Lists values of `inside` for the profiler's own work. OWN_WORK is added around calm work on a
 * thread of the application (creating the helper): its allocations are neither the application's
 * nor lost samples. The helper always has OWN_WORK, or OWN_GUARDED under a guard (memory_guard.h).
 */
enum { OWN_WORK = 1 << 16, OWN_GUARDED = 1 << 17 };

_Static_assert(sizeof(struct thread_local_state) <= 64, "static TLS is scarce");
extern __thread struct thread_local_state profiler_tls;

/* Marks the calling thread as the profiler's. Its allocations take the slow path: helper_heap.h.
 * Context: the thread itself, at its start. */
static inline void thread_mark_as_profiler(void) {
    profiler_tls.inside = OWN_WORK;
    profiler_tls.alloc_left = 0; /* COUNTDOWN_ALWAYS */
    profiler_tls.is_profiler_thread = true;
}

struct thread_table {
    uint32_t max_depth;
    size_t stride;
    _Atomic uint64_t free_head;    /* tag << 32 | index + 1 */
    _Atomic uint64_t retired_head; /* tag << 32 | index + 1 */
    _Atomic uint32_t fresh;        /* number of slots that were ever used */
    _Atomic uint64_t unregistered; /* number of threads that found no slot */
    _Atomic bool is_closed;        /* thread_table_close() was called */
    struct chunk_pool pool;
    _Atomic uintptr_t segments[THREAD_SEGMENTS];
};

void thread_table_init(struct thread_table *table, uint32_t max_depth);

/* Returns the number of bytes for the first threads and their first samples, for
 * profiler_memory_map_ahead(). Context: any. */
size_t thread_table_first_bytes(const struct thread_table *table);

/* Takes a slot for a thread that is about to start. If there is none, counts that and returns NULL.
 * Context: calm. Async-signal-safe: yes. */
struct thread_state *thread_table_take(struct thread_table *table);

/* Frees the slot for another thread. Context: calm. */
void thread_table_give_back(struct thread_table *table, struct thread_state *thread);

/* Retires a thread that is past its start routine but still runs destructors: it keeps its slot
 * until the kernel no longer knows it. Context: the thread itself, calm. */
void thread_table_retire(struct thread_table *table, struct thread_state *thread);

/* Checks up to `limit` retired slots and frees those whose thread has ended, after a call of
 * `gone`. Context: calm. */
void thread_table_sweep(struct thread_table *table, uint32_t limit,
                        void (*gone)(struct thread_state *thread));

/* Returns true if the kernel no longer knows the thread of this slot. Context: any. */
bool thread_has_ended(const struct thread_state *thread);

/* Adds a sample to the thread's current generation. Returns false if there is no memory for it.
 * Context: the owner, with profiler_tls.inside set. Async-signal-safe: yes. */
bool thread_record(struct thread_table *table, struct thread_state *thread,
                   const struct sample *sample);

/* Flips the generation of each thread that has records, visits the records, and frees their memory.
 * Records stay for the next harvest if their thread does not leave the old generation in time.
 * Context: the helper. */
void thread_table_harvest(struct thread_table *table,
                          void (*visit)(void *arg, const struct sample *sample), void *arg);

/* Counts the samples recorded so far, the samples with a span, and the CPU time of samples that are
 * counted as DROP_FOREIGN_STACK. Context: any. */
struct thread_samples {
    uint64_t recorded;
    uint64_t linked;
    uint64_t foreign_nano;
};
struct thread_samples thread_table_samples(const struct thread_table *table);

/* Adds up the counts of dropped samples. Context: any. */
void thread_table_dropped(const struct thread_table *table, uint64_t counts[DROP_REASON_COUNT]);

/* Empties the table in a forked child. Context: fork handler. */
void thread_table_reset(struct thread_table *table);

/* Returns true if the kernel has emptied the slots. Call it before thread_table_reset(). Context:
 * fork handler. */
bool thread_table_is_emptied(struct thread_table *table);

/* Returns true in a child that no fork handler has seen, made by a bare clone(2) or _Fork(): the
 * kernel has emptied all slots (profiler_memory.h), and no slot may be used any more.
 * thread_is_wiped() checks one slot, the calling thread's (profiler_tls.thread). Async-signal-safe:
 * yes.
 */
bool thread_table_is_wiped(const struct thread_table *table);
static inline bool thread_is_wiped(const struct thread_state *thread) {
    return atomic_load_explicit(&thread->tid, memory_order_relaxed) == 0;
}

/* Returns the slot of index `index`, which may never have been used; NULL: the memory of its
 * segment was never mapped. */
struct thread_state *thread_table_at(const struct thread_table *table, uint32_t index);

static inline uint32_t thread_table_count(const struct thread_table *table) {
    /* pairs with the exchange in slot_take_fresh() */
    return atomic_load_explicit(&table->fresh, memory_order_acquire);
}

/* Announce the beginning and the end of a sample. thread_begin_sample() returns false if no sample
 * may be taken any more; the caller must call thread_end_sample() even then. Context: the owner, in
 * which no other sample comes in between. Async-signal-safe: yes. */
static inline bool thread_begin_sample(const struct thread_table *table,
                                       struct thread_state *thread) {
    /* pairs with thread_table_close(): announces, then checks */
    atomic_store_explicit(&thread->samples_now, true, memory_order_seq_cst);
    return !atomic_load_explicit(&table->is_closed, memory_order_seq_cst);
}
static inline void thread_end_sample(struct thread_state *thread) {
    /* pairs with the load in thread_table_close(): the sample is recorded */
    atomic_store_explicit(&thread->samples_now, false, memory_order_release);
}

/* Prevents new samples, and waits until the samples in progress have ended, for at most 20,000
 * rounds of wait.h, which take a second or more. Context: calm. */
void thread_table_close(struct thread_table *table);

/* Counts a recorded sample. Context: the owner. Async-signal-safe: yes. */
static inline void thread_count_sample(struct thread_state *thread, bool is_linked) {
    atomic_fetch_add_explicit(&thread->recorded, 1, memory_order_relaxed);
    if (is_linked)
        atomic_fetch_add_explicit(&thread->linked, 1, memory_order_relaxed);
}

/* Counts dropped samples. Context: any. Async-signal-safe: yes. */
static inline void thread_count_drops(struct thread_state *thread, enum drop_reason reason,
                                      uint64_t count) {
    atomic_fetch_add_explicit(&thread->dropped[reason], count, memory_order_relaxed);
}
static inline void thread_count_drop(struct thread_state *thread, enum drop_reason reason) {
    thread_count_drops(thread, reason, 1);
}

#endif
