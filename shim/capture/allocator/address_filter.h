/* Decides by one byte whether an address may be a sampled object.
 *
 * The filter is an array of saturating counters, one for each KiB of the address space; addresses
 * that are 8 GiB apart share a counter. The index is the address, not a hash: frees of neighbouring
 * objects share cache lines (a line serves 64 KiB), and counters of addresses where the program has
 * no heap are never touched. The filter touches at most one page for 1,024 of the heap's. A sample
 * is taken every half a mebibyte in the mean, so only one other object in 512 is in the KiB of a
 * sampled object.
 *
 * Larger granules miss fewer cache lines: at 2 KiB, free() took a fifth less of cc1plus's time than
 * at 512 bytes. But they give a sampled object more neighbours, and each free of a neighbour
 * searches the table, for 15 to 30 ns: at 2 KiB a benchmark's one hot object became a neighbour.
 * Counters decrease on free: an allocator reuses an address at once, and a filter that only fills
 * would soon pass every address. A counter that reaches 255 stays there. With 100,000 live samples,
 * a malloc and its free cost 10 ns with 2^20 counters and 4 ns with these 2^23.
 *
 * Until it is opened, the filter is one counter for all addresses, so that a process that is not
 * profiled loses no address space.
 *
 * Context: any. Async-signal-safe: yes.
 */
#ifndef OTELPROF_ADDRESS_FILTER_H
#define OTELPROF_ADDRESS_FILTER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum {
    ADDRESS_FILTER_GRANULE_BITS = 10,
    ADDRESS_FILTER_ENTRIES = 1 << 23,
    ADDRESS_FILTER_STUCK = 255
};

struct address_filter {
    _Atomic uint32_t mask; /* bit mask of the index; 0: the filter is not opened */
    _Atomic uint8_t only;
    _Atomic(_Atomic uint8_t *) counters;
};

/* Initializes a filter that is not opened. */
#define ADDRESS_FILTER_CLOSED(filter)                                                              \
    { .counters = &(filter).only }

static inline _Atomic uint8_t *address_filter_at(const struct address_filter *filter,
                                                 const void *address) {
    /* pairs with address_filter_open(): a thread that loads the mask first sees its counters,
     * too */
    const uint32_t mask = atomic_load_explicit(&filter->mask, memory_order_acquire);
    const uint32_t index = (uint32_t)((uintptr_t)address >> ADDRESS_FILTER_GRANULE_BITS);
    return &atomic_load_explicit(&filter->counters, memory_order_relaxed)[index & mask];
}

/* Opens the filter. `counters`: an array of ADDRESS_FILTER_ENTRIES zeros, which stays mapped for
 * ever. The former counts are lost. Context: calm. */
static inline void address_filter_open(struct address_filter *filter, _Atomic uint8_t *counters) {
    atomic_store_explicit(&filter->counters, counters, memory_order_relaxed);
    /* pairs with the acquire in address_filter_at() */
    atomic_store_explicit(&filter->mask, ADDRESS_FILTER_ENTRIES - 1, memory_order_release);
}

static inline bool address_filter_is_open(const struct address_filter *filter) {
    return atomic_load_explicit(&filter->mask, memory_order_relaxed) != 0;
}

static inline bool address_filter_may_hold(const struct address_filter *filter,
                                           const void *address) {
    return atomic_load_explicit(address_filter_at(filter, address), memory_order_relaxed) != 0;
}

static inline void address_filter_change(struct address_filter *filter, const void *address,
                                         int by) {
    _Atomic uint8_t *const counter = address_filter_at(filter, address);
    uint8_t value = atomic_load_explicit(counter, memory_order_relaxed);
    do {
        if (value == ADDRESS_FILTER_STUCK || (by < 0 && value == 0))
            return;
    } while (!atomic_compare_exchange_weak_explicit(counter, &value, (uint8_t)(value + by),
                                                    memory_order_relaxed, memory_order_relaxed));
}

/* Makes the filter pass this address for ever. */
static inline void address_filter_stick(struct address_filter *filter, const void *address) {
    atomic_store_explicit(address_filter_at(filter, address), ADDRESS_FILTER_STUCK,
                          memory_order_relaxed);
}

#endif
