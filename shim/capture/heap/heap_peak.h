/* Keeps the peak of the live heap: the objects that were live when most bytes were live, summed up
 * by stack.
 *
 * The table of live objects knows the number of live bytes at any moment. An allocation that brings
 * it 5 % above the last kept peak wakes the helper, which then reads the whole table. Some objects
 * of the peak may be freed by then, so the threads themselves record the highest number of live
 * bytes. After a peak the helper polls again, each time after twice the interval, while the heap
 * still grows. A harvest, which visits the heap anyway, keeps the heap if it is a new peak. Only a
 * higher peak replaces a peak.
 *
 * Reading takes some milliseconds for each 100,000 live objects, and the helper then pauses for ten
 * times as long. If peaks are gone before they can be read, polls become ever more rare. While the
 * table is read, objects are freed and allocated, and the sums may include both: sums that exceed
 * the highest number of live bytes by more than 1.6 % are dropped.
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
    PEAK_STACKS = 1 << 16,      /* distinct stacks at most */
    PEAK_FIRST_BYTES = 1 << 20, /* fewer live bytes raise no alarm */
    PEAK_GROWTH = 20,           /* a new peak is higher by this fraction: 5 % */
};

/* Sums up the objects of one stack. */
struct peak_stack {
    uint32_t stack; /* stack_store reference */
    double objects;
    uint64_t bytes;
};

struct peak_sums {
    struct peak_stack *stacks;
    uint32_t count;
    uint64_t bytes;     /* bytes of all objects, including those counted in left_out */
    uint64_t left_out;  /* sampled objects without room for their stack */
    uint64_t unix_nano; /* when the objects were read */
};

struct heap_peak {
    /* the peak is recorded: OTEL_PROFILER_TYPES enables it, and there is memory */
    bool watches;
    _Atomic bool rung;             /* a thread has seen a new peak */
    _Atomic uint64_t highest;      /* highest number of bytes that were ever live at once */
    _Atomic uint64_t ring_at;      /* number of live bytes at which a thread raises the alarm */
    _Atomic(void (*)(void)) alarm; /* heap_peak_set_alarm() */
    /* used by the helper alone: */
    struct stepped_memory memory; /* the index, then the stacks of `kept` and of `made` */
    uint32_t capacity;            /* number of stacks for which there is room */
    uint32_t *index;              /* used while `made` is computed: place + 1 by hash; 0: free */
    uint64_t index_mask;
    struct peak_sums kept;
    struct peak_sums made;
    uint64_t not_before; /* CLOCK_MONOTONIC: end of the pause */
    uint64_t rest_nano;
    uint64_t next_poll_ns;  /* when to poll for further growth; UINT64_MAX: never */
    uint64_t poll_delay_ns; /* time before that poll */
};

/* Returns the number of bytes that the peak takes beside a live table of so many objects. Context:
 * any. */
size_t heap_peak_bytes(uint64_t max_objects);

/* Starts to record the peak. Returns false if there is no memory. Context: calm. */
bool heap_peak_start(struct heap_peak *peak, uint64_t max_objects);

/* Forgets the parent's peak in a forked child. Context: fork handler. */
void heap_peak_reset(struct heap_peak *peak);

/* Sets the function that wakes the helper; it must be async-signal-safe. */
void heap_peak_set_alarm(struct heap_peak *peak, void (*alarm)(void));

/* Call after an object was added: `bytes` are live now. Context: any. Async-signal-safe: yes. */
void heap_peak_grew(struct heap_peak *peak, uint64_t bytes);

/* Returns the time of the next poll (CLOCK_MONOTONIC, nanoseconds); UINT64_MAX: not before an
 * alarm. */
uint64_t heap_peak_next_poll(const struct heap_peak *peak);

/* Keeps the live heap as the peak if a poll is due by `clock` and the heap is larger than the last
 * peak. Returns true if it kept the heap. */
bool heap_peak_poll(struct heap_peak *peak, const struct live_table *live, uint64_t (*clock)(void));

/* Keep the peak in parts, for a caller that visits the live table anyway: begin, add each object,
 * end. heap_peak_begin() returns false if there is no new peak, or no memory for the sums; the
 * caller then adds nothing and does not end. */
bool heap_peak_begin(struct heap_peak *peak, const struct live_table *live);
void heap_peak_add(struct heap_peak *peak, const struct live_object *object);
/* Returns true if the sums were kept as the peak; false: they are not higher than the last peak, or
 * exceed the highest number of live bytes by too much. */
bool heap_peak_end(struct heap_peak *peak);

/* Moves the stacks of the kept peak to the store's present arena, but leaves a quarter of the arena
 * to live objects. Returns the number of stacks that had no room and are forgotten. Context: the
 * `evacuate` callback of stack_store_flip(), after live objects. */
uint32_t heap_peak_evacuate(struct heap_peak *peak, struct stack_store *store);

#endif
