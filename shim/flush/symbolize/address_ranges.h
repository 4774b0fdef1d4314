/* Holds ranges of addresses and a value for each, found by bisection. If ranges overlap, the one
 * that begins last is found: the innermost of nested ones. Context: flush. */
#ifndef OTELPROF_ADDRESS_RANGES_H
#define OTELPROF_ADDRESS_RANGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct address_range {
    uint64_t low;
    uint64_t high;  /* exclusive */
    uint64_t reach; /* the highest `high` of this range and all before it */
    uint64_t value;
};

/* Zeroed: none. */
struct address_ranges {
    struct address_range *items;
    size_t count;
    size_t room;
};

/* Adds [low, high), unless it is empty or there is no memory. */
void address_ranges_add(struct address_ranges *ranges, uint64_t low, uint64_t high, uint64_t value);

/* Sorts them: call once, after the last is added and before the first search. */
void address_ranges_sort(struct address_ranges *ranges);

/* Gives the value of the range around `address`. false: there is none. */
bool address_ranges_find(const struct address_ranges *ranges, uint64_t address, uint64_t *value);

void address_ranges_free(struct address_ranges *ranges);

#endif
