/* The live heap at its highest: what was live then, summed up by stack.
 *
 * The table of live objects knows how many bytes are live at any moment. An allocation that brings
 * them 5 % above the last peak that was kept wakes the helper, which then reads the whole table.
 * Some of the peak may be freed by then, so the threads themselves remember the highest number of
 * live bytes. After a peak the helper looks again, each time after twice the time, as long as the
 * heap still grows; what is live at a harvest is kept, too. A peak is only replaced by a higher
 * one.
 *
 * Reading takes some milliseconds for each 100,000 live objects, and the helper rests ten times as
 * long. A program whose peaks are gone before they can be read is looked at ever more rarely.
 * Reading is not one moment: what is freed and what is allocated meanwhile may both be found. Sums
 * that are above the highest number of live bytes by more than 1.6 % are not kept.
 *
 * Context: the helper, unless a function says otherwise.
 */
#ifndef OTELPROF_HEAP_PEAK_H
#define OTELPROF_HEAP_PEAK_H

#include "live_table.h"
#include "stack_store.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    PEAK_STACKS = 1 << 16,      /* are told apart at most */
    PEAK_FIRST_BYTES = 1 << 20, /* less than this wakes nobody */
    PEAK_GROWTH = 20,           /* a new peak is higher by one part in so many: 5 % */
};

/* The objects of one stack. */
struct peak_stack {
    uint32_t stack; /* stack_store reference */
    double objects;
    uint64_t bytes;
};

struct peak_sums {
    struct peak_stack *stacks;
    uint32_t count;
    uint64_t bytes;     /* of all objects, also of those left out */
    uint64_t left_out;  /* sampled objects: there was no room for their stack */
    uint64_t unix_nano; /* when they were read */
};

struct heap_peak {
    bool watches;                  /* OTEL_PROFILER_TYPES has it, and there is memory */
    _Atomic bool rung;             /* a thread has seen a new peak */
    _Atomic uint64_t highest;      /* bytes that were ever live at once */
    _Atomic uint64_t ring_at;      /* live bytes that are a new peak */
    _Atomic(void (*)(void)) alarm; /* heap_peak_set_alarm() */
    /* the helper's: */
    uint32_t capacity; /* of stacks */
    uint32_t *index;   /* of `made` while it is made: places + 1, by hash; 0: free */
    uint64_t index_mask;
    struct peak_sums kept;
    struct peak_sums made;
    uint64_t not_before; /* CLOCK_MONOTONIC: it rests */
    uint64_t rest_nano;
    uint64_t next_look; /* whether it still grows; UINT64_MAX: nobody asks */
    uint64_t look_nano; /* how long that was put off */
};

/* The memory that it takes beside a live table of so many objects. Context: any. */
size_t heap_peak_bytes(uint64_t max_objects);

/* Watches from now on. false: no memory. Context: calm. */
bool heap_peak_start(struct heap_peak *peak, uint64_t max_objects);

/* In a forked child: there was no peak yet. Context: fork handler. */
void heap_peak_reset(struct heap_peak *peak);

/* What wakes the helper. Async-signal-safe. */
void heap_peak_set_alarm(struct heap_peak *peak, void (*alarm)(void));

/* An object has come, and so many bytes are live. Context: any. Async-signal-safe: yes. */
void heap_peak_grew(struct heap_peak *peak, uint64_t bytes);

/* When to look (CLOCK_MONOTONIC, nanoseconds); UINT64_MAX: not before it is rung for. */
uint64_t heap_peak_next_look(const struct heap_peak *peak);

/* Keeps what is live, if that is a new peak and it is time to look, by that clock. true: it was
 * kept. */
bool heap_peak_look(struct heap_peak *peak, const struct live_table *live, uint64_t (*clock)(void));

/* In parts, for who visits the live table anyway: begins, adds each object, ends. false: there is
 * no new peak, nothing is to be added or ended. */
bool heap_peak_begin(struct heap_peak *peak, const struct live_table *live);
void heap_peak_add(struct heap_peak *peak, const struct live_object *object);
/* true: it was kept. */
bool heap_peak_end(struct heap_peak *peak);

/* The stacks of the kept peak move to the store's present arena, as far as they leave a quarter of
 * it to live objects. Returns how many had no room there, and are forgotten. Context: carry_over()
 * of stack_store_turn(), after live objects. */
uint32_t heap_peak_carry(struct heap_peak *peak, struct stack_store *store);

#endif
