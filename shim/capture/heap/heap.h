/* Samples allocations: counts each sample where it was made, and tracks it until it is freed.
 *
 * Each thread draws the number of bytes to its next sample at random. So an allocation is sampled
 * with a probability p that depends on its size alone, and counts as 1/p allocations of that size.
 * The number of tracked objects is bounded: if too many are live, the interval between samples
 * grows, and objects that the longer interval would not have sampled are dropped.
 */
#ifndef OTELPROF_HEAP_H
#define OTELPROF_HEAP_H

#include "config.h"
#include "heap_peak.h"
#include "live_table.h"
#include "log.h"
#include "record/record.h"
#include "stack_store.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct heap {
    const struct config *config;
    const struct log *log;
    struct recorder *recorder;
    /* PROFILE_ALLOC, PROFILE_HEAP: the types for which memory was prepared at the start */
    unsigned offers;
    /* mean bytes between samples; grows until the settings set another interval */
    _Atomic uint64_t interval;
    _Atomic uint64_t logged_interval; /* the interval that was last logged, or set */
    uint64_t start_nano;              /* CLOCK_MONOTONIC_COARSE */
    /* samples are tracked until they are freed; else a sample only counts where it was made */
    bool tracks_live;
    _Atomic bool stopped;     /* set by heap_stop(): objects are not put back any more */
    _Atomic bool subsampling; /* a thread is subsampling */
    struct live_table live;
    struct stack_store stacks;
    struct heap_peak peak;
};

/* Returns the number of bytes that heap_start() will need, for profiler_memory_map_ahead().
 * Context: any. */
size_t heap_first_bytes(const struct config *config);

/* Starts, before anything is sampled. Objects are tracked if `config` enables that and there is
 * memory for it (otherwise a log line reports it). Context: calm. */
void heap_start(struct heap *heap, const struct config *config, const struct log *log,
                struct recorder *recorder);
/* Makes heap_put_back() drop its objects from now on. Context: calm. */
void heap_stop(struct heap *heap);
/* Empties the live table, its stacks, the peak and the filter of addresses in a forked child.
 * Context: fork handler. */
void heap_after_fork(struct heap *heap);

/* Returns true if allocations are sampled at present, for any profile. Context: any. */
bool heap_is_on(const struct heap *heap);

/* Draws the calling thread's next gap, which is infinite if nothing is sampled. Context: any,
 * profiler_tls.thread set. */
void heap_draw_gap(const struct heap *heap, struct thread_state *thread);

/* Sets the mean of the gaps that are drawn from now on. Only one thread may call at a time.
 * Context: any. */
void heap_set_interval(struct heap *heap, uint64_t interval);

/* Returns the present mean of bytes between two samples. Context: any. */
uint64_t heap_interval(const struct heap *heap);
/* Returns the seconds since heap_start(). Context: any. */
uint32_t heap_now_seconds(const struct heap *heap);
/* Flips the arenas of the stacks of live objects if it is time to (stack_store_flip). Called at
 * each harvest. Context: the helper. */
void heap_maintain(struct heap *heap);
/* Checks for a new peak (heap_peak.h); heap_next_poll() returns when to check. Context: the
 * helper. */
uint64_t heap_next_poll(const struct heap *heap);
void heap_poll(struct heap *heap);
/* Calls `visit` for each live object, if the settings enable the profile. Keeps the visited heap if
 * it is a new peak. Context: the helper. */
void heap_visit(struct heap *heap, void (*visit)(void *arg, const struct live_object *object),
                void *arg);
/* Returns the peak, if the settings enable its profile; NULL: there is none. Context: the
 * helper. */
const struct peak_sums *heap_peak_of(const struct heap *heap);
/* Logs one line when the interval has grown. Context: the helper. */
void heap_report(struct heap *heap);

/* Records a sampled allocation that succeeded, and draws the thread's next gap. If signals cannot
 * be blocked, counts a drop instead of recording. Works on any stack (arch_entry.h). errno is
 * preserved. Context: the malloc hook; profiler_tls.inside is 0. */
void heap_sample(struct heap *heap, void *object, uint64_t size);
/* Removes an object that is about to be freed. If it was sampled, copies it to `*taken` and returns
 * true. */
bool heap_forget(struct heap *heap, const void *object, struct live_object *taken);
/* Sets another size of an object that heap_forget() took. Context: any. */
void heap_resize(struct live_object *object, double size);
/* Puts back an object that heap_forget() took: with its new size, or unchanged because realloc()
 * failed. Drops and counts the object after heap_stop(), on the profiler's own threads, if signals
 * cannot be blocked, or if the arenas of stacks have flipped meanwhile. errno is preserved. */
void heap_put_back(struct heap *heap, const struct live_object *taken);

#endif
