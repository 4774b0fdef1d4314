/* Sampled allocations: counted where they were made, remembered until they are freed.
 *
 * Each thread draws the number of bytes to its next sample by chance, so that an allocation is
 * sampled with a probability that its size alone decides, and stands for as many of its size. What
 * is remembered is bounded: where too many sampled objects are live the interval between samples
 * grows, and those that would not have been sampled by the longer one are forgotten.
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
    unsigned offers;           /* PROFILE_ALLOC, PROFILE_HEAP: what was made ready at the start */
    _Atomic uint64_t interval; /* mean bytes between samples; grows until another is set */
    _Atomic uint64_t logged_interval; /* which the log has, or that was set */
    uint64_t start_nano;              /* CLOCK_MONOTONIC_COARSE */
    bool remembers;           /* what is sampled, until it is freed; otherwise it counts once */
    _Atomic bool stopped;     /* heap_stop() */
    _Atomic bool subsampling; /* a thread is at it */
    struct live_table live;
    struct stack_store stacks;
    struct heap_peak peak;
};

/* What heap_start() will need: own_memory_map_ahead(). Context: any. */
size_t heap_first_bytes(const struct config *config);

/* Before anything is sampled. Objects are remembered if `config` has them profiled and there is
 * memory for it (otherwise said in the log). Context: calm. */
void heap_start(struct heap *heap, const struct config *config, const struct log *log,
                struct recorder *recorder);
/* Nothing is put back any more. Context: calm. */
void heap_stop(struct heap *heap);
/* In a forked child: nothing is live. The filter of addresses is emptied. Context: fork handler. */
void heap_after_fork(struct heap *heap);

/* Whether allocations are sampled at present, for one profile or the other. Context: any. */
bool heap_is_on(const struct heap *heap);

/* Draws the calling thread's next gap, which has no end where nothing is sampled. Context: any,
 * own_tls.thread set. */
void heap_draw_gap(const struct heap *heap, struct thread_state *thread);

/* From now on gaps are drawn with this mean. One thread at a time. Context: any. */
void heap_set_interval(struct heap *heap, uint64_t interval);

/* The present mean of bytes between two samples. Context: any. */
uint64_t heap_interval(const struct heap *heap);
/* Seconds since heap_start(). Context: any. */
uint32_t heap_now_seconds(const struct heap *heap);
/* What is done for the live heap at each harvest. Context: the helper. */
void heap_maintain(struct heap *heap);
/* When to look whether there is a new peak (heap_peak.h), and looking. Context: the helper. */
uint64_t heap_next_look(const struct heap *heap);
void heap_look(struct heap *heap);
/* Calls `visit` for each live object, as far as the settings have them in a profile; what is live
 * is kept if it is a new peak. Context: the helper. */
void heap_visit(struct heap *heap, void (*visit)(void *arg, const struct live_object *object),
                void *arg);
/* The peak, if the settings have it in a profile; NULL: there is none. Context: the helper. */
const struct peak_sums *heap_peak_of(const struct heap *heap);
/* One log line when the interval has grown. Context: the helper. */
void heap_report(struct heap *heap);

/* A sampled allocation that succeeded. Context: the malloc hook; own_tls.inside is 0. */
void heap_sample(struct heap *heap, void *object, uint64_t size);
/* The object is about to be freed: forget it; true and a copy in `*taken` if it was sampled. */
bool heap_forget(struct heap *heap, const void *object, struct live_object *taken);
/* What heap_forget() took has another size now. Context: any. */
void heap_resize(struct live_object *object, double size);
/* Puts back what heap_forget() took, because the realloc failed, or with another size. */
void heap_put_back(struct heap *heap, const struct live_object *taken);

#endif
