/* Holds ranges of addresses and a value for each, found by bisection. If ranges overlap, the one
 * that begins last is found, which is the innermost of nested ranges. Context: flush. */
#ifndef OTELPROF_ADDRESS_RANGES_H
#define OTELPROF_ADDRESS_RANGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct address_range {
    uint64_t low;
    uint64_t high;  /* one past the last address */
    uint64_t reach; /* the highest `high` of this range and of all ranges before it */
    uint64_t value;
};

/* Holds the ranges. Initially zero: no ranges. */
struct address_ranges {
    struct address_range *items;
    size_t count;
    size_t room;
};

/* Adds [low, high), unless it is empty or there is no memory. */
void address_ranges_add(struct address_ranges *ranges, uint64_t low, uint64_t high, uint64_t value);

/* Sorts the ranges. Must be called once, after the last is added and before the first search. */
void address_ranges_sort(struct address_ranges *ranges);

/* Stores the value of the range around `address`. Returns false if there is none. */
bool address_ranges_find(const struct address_ranges *ranges, uint64_t address, uint64_t *value);

void address_ranges_free(struct address_ranges *ranges);

#endif
