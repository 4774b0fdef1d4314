#include "heap_peak.h"

#include "clock.h"
#include "hash.h"
#include "kernel/profiler_memory.h"

#include <string.h>

enum {
    SLACK = 64, /* number of objects that may be added while the table is read */
    /* sums may exceed the highest number of live bytes by a 64th of it, because objects come and go
     * while the sums are computed */
    TOLERANCE = 64,
    RESTS = 10, /* the pause after a reading lasts so many times as long as the reading took */
};
static const uint64_t least_rest = 10 * NANO_PER_MILLI;
static const uint64_t longest_rest = NANO_PER_SECOND;
static const uint64_t first_poll = 100 * NANO_PER_MILLI;

/* --- memory --- */

static uint32_t capacity_for(uint64_t max_objects) {
    uint32_t capacity = SLACK;
    while (capacity < max_objects && capacity < PEAK_STACKS)
        capacity *= 2;
    return capacity;
}

static size_t index_bytes(uint32_t capacity) {
    return whole_pages(2 * capacity * sizeof(uint32_t));
}

static size_t stacks_bytes(uint32_t capacity) {
    return whole_pages(capacity * sizeof(struct peak_stack));
}

static size_t all_bytes(uint32_t capacity) {
    return index_bytes(capacity) + 2 * stacks_bytes(capacity);
}

size_t heap_peak_bytes(uint64_t max_objects) {
    return all_bytes(capacity_for(max_objects));
}

/* Resets to the state before the first peak. */
static void peak_reset_state(struct heap_peak *peak) {
    atomic_store(&peak->rung, false);
    atomic_store(&peak->highest, 0);
    atomic_store(&peak->ring_at, PEAK_FIRST_BYTES);
    peak->kept = (struct peak_sums){.stacks = peak->kept.stacks};
    peak->made = (struct peak_sums){.stacks = peak->made.stacks};
    peak->not_before = 0;
    peak->rest_nano = least_rest;
    peak->next_poll_ns = UINT64_MAX;
    peak->poll_delay_ns = first_poll;
}

bool heap_peak_start(struct heap_peak *peak, uint64_t max_objects) {
    peak->capacity = capacity_for(max_objects);
    char *const memory = stepped_memory_map(&peak->memory, all_bytes(peak->capacity));
    if (!memory)
        return false;
    peak->index = (void *)memory;
    peak->kept.stacks = (void *)(memory + index_bytes(peak->capacity));
    peak->made.stacks =
        (void *)(memory + index_bytes(peak->capacity) + stacks_bytes(peak->capacity));
    peak_reset_state(peak);
    peak->watches = true;
    return true;
}

void heap_peak_reset(struct heap_peak *peak) {
    if (!peak->watches)
        return;
    profiler_memory_reset_in_child(peak->index, all_bytes(peak->capacity));
    peak_reset_state(peak);
}

/* --- on the program's threads --- */

void heap_peak_set_alarm(struct heap_peak *peak, void (*alarm)(void)) {
    /* pairs with the acquire in peak_ring(): the data that `alarm` uses is ready */
    atomic_store_explicit(&peak->alarm, alarm, memory_order_release);
}

static void raise_highest(struct heap_peak *peak, uint64_t bytes) {
    uint64_t highest = atomic_load_explicit(&peak->highest, memory_order_relaxed);
    while (highest < bytes &&
           !atomic_compare_exchange_weak_explicit(&peak->highest, &highest, bytes,
                                                  memory_order_relaxed, memory_order_relaxed))
        continue;
}

/* Sets the alarm threshold 5 % above `bytes` until the helper has polled, and wakes the helper. So
 * a growing process raises the alarm at most some fifty times for each tenfold growth, and at most
 * once for each poll otherwise. */
static void peak_ring(struct heap_peak *peak, uint64_t bytes, uint64_t ring_at) {
    if (!atomic_compare_exchange_strong_explicit(&peak->ring_at, &ring_at,
                                                 bytes + bytes / PEAK_GROWTH, memory_order_relaxed,
                                                 memory_order_relaxed))
        return; /* another thread raises the alarm */
    /* pairs with heap_peak_set_alarm() */
    void (*const alarm)(void) = atomic_load_explicit(&peak->alarm, memory_order_acquire);
    /* pairs with the exchange in heap_peak_poll() */
    atomic_store_explicit(&peak->rung, true, memory_order_release);
    if (alarm)
        alarm();
}

void heap_peak_grew(struct heap_peak *peak, uint64_t bytes) {
    if (!peak->watches)
        return;
    raise_highest(peak, bytes);
    const uint64_t ring_at = atomic_load_explicit(&peak->ring_at, memory_order_relaxed);
    if (bytes >= ring_at)
        peak_ring(peak, bytes, ring_at);
}

/* --- sums --- */

static bool clear_index(struct heap_peak *peak, uint64_t objects) {
    uint64_t places = 2 * SLACK;
    while (places < 2 * (objects + SLACK) && places < 2 * (uint64_t)peak->capacity)
        places *= 2;
    if (!stepped_memory_open(&peak->memory, peak->index, places * sizeof *peak->index))
        return false;
    peak->index_mask = places - 1;
    memset(peak->index, 0, places * sizeof *peak->index);
    return true;
}

bool heap_peak_begin(struct heap_peak *peak, const struct live_table *live) {
    if (!peak->watches || live_table_bytes_live(live) <= peak->kept.bytes)
        return false;
    peak->made = (struct peak_sums){.stacks = peak->made.stacks};
    return clear_index(peak, atomic_load_explicit(&live->count, memory_order_relaxed));
}

/* Finds or adds the sums of a stack; NULL: there is no room. Half of the index stays free, so each
 * search ends. */
static struct peak_stack *peak_find_sums(struct heap_peak *peak, uint32_t stack) {
    struct peak_sums *const made = &peak->made;
    uint64_t place = hash_word(0, stack) & peak->index_mask;
    while (peak->index[place]) {
        struct peak_stack *const found = &made->stacks[peak->index[place] - 1];
        if (found->stack == stack)
            return found;
        place = (place + 1) & peak->index_mask;
    }
    if (made->count > peak->index_mask / 2 ||
        !stepped_memory_open(&peak->memory, &made->stacks[made->count], sizeof *made->stacks))
        return NULL;
    made->stacks[made->count] = (struct peak_stack){.stack = stack};
    peak->index[place] = ++made->count;
    return &made->stacks[made->count - 1];
}

void heap_peak_add(struct heap_peak *peak, const struct live_object *object) {
    struct peak_stack *const sums = peak_find_sums(peak, object->stack);
    peak->made.bytes += object->bytes;
    if (!sums) {
        peak->made.left_out++;
        return;
    }
    sums->objects += object->objects;
    sums->bytes += object->bytes;
}

bool heap_peak_end(struct heap_peak *peak) {
    const uint64_t highest = atomic_load_explicit(&peak->highest, memory_order_relaxed);
    if (peak->made.bytes <= peak->kept.bytes || peak->made.bytes > highest + highest / TOLERANCE)
        return false;
    const struct peak_sums before = peak->kept;
    peak->kept = peak->made;
    peak->kept.unix_nano = realtime_nano();
    peak->made = before;
    return true;
}

/* --- polls --- */

static void peak_add_object(void *peak, const struct live_object *object) {
    heap_peak_add(peak, object);
}

uint64_t heap_peak_next_poll(const struct heap_peak *peak) {
    if (!peak->watches)
        return UINT64_MAX;
    if (atomic_load_explicit(&peak->rung, memory_order_relaxed))
        return peak->not_before;
    return peak->next_poll_ns > peak->not_before ? peak->next_poll_ns : peak->not_before;
}

bool heap_peak_poll(struct heap_peak *peak, const struct live_table *live,
                    uint64_t (*clock)(void)) {
    const uint64_t before = clock();
    if (before < heap_peak_next_poll(peak))
        return false;
    /* pairs with the store in peak_ring() */
    const bool was_rung = atomic_exchange_explicit(&peak->rung, false, memory_order_acquire);
    bool was_kept = false;
    if (heap_peak_begin(peak, live)) {
        live_table_visit(live, peak_add_object, peak);
        was_kept = heap_peak_end(peak);
    }
    const uint64_t now = clock();

    const uint64_t ring_at = peak->kept.bytes + peak->kept.bytes / PEAK_GROWTH;
    atomic_store_explicit(&peak->ring_at, ring_at > PEAK_FIRST_BYTES ? ring_at : PEAK_FIRST_BYTES,
                          memory_order_relaxed);

    const uint64_t spent = now - before;
    const uint64_t needed = spent * RESTS > least_rest ? spent * RESTS : least_rest;
    const uint64_t longer = earlier(2 * peak->rest_nano, longest_rest);
    peak->rest_nano = was_kept || longer < needed ? needed : longer;
    peak->not_before = now + peak->rest_nano;

    if (was_kept || live_table_bytes_live(live) > peak->kept.bytes) {
        /* a growing heap may grow by less than 5 %, which raises no alarm */
        peak->poll_delay_ns = was_rung ? first_poll : 2 * peak->poll_delay_ns;
        peak->next_poll_ns = now + peak->poll_delay_ns;
    } else
        peak->next_poll_ns = UINT64_MAX;
    return was_kept;
}

/* --- stacks --- */

uint32_t heap_peak_evacuate(struct heap_peak *peak, struct stack_store *store) {
    struct peak_sums *const kept = &peak->kept;
    uint32_t count = 0;
    for (uint32_t i = 0; i < kept->count; i++) {
        kept->stacks[count] = kept->stacks[i];
        if (stack_store_is_scarce(store))
            break; /* leaves the rest of the arena to live objects */
        kept->stacks[count].stack = stack_store_evacuate(store, kept->stacks[i].stack);
        count += kept->stacks[count].stack != STACK_NONE;
    }
    const uint32_t lost = kept->count - count;
    kept->count = count;
    return lost;
}
