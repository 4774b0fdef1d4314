/* Ranges of addresses and what lies in each, found by bisection. Ranges may overlap: then the one
 * that begins last is meant, which is the innermost of nested ones. Context: flush.
 */
#ifndef OTELPROF_ADDRESS_RANGES_H
#define OTELPROF_ADDRESS_RANGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct address_range {
    uint64_t low;
    uint64_t high;  /* exclusive */
    uint64_t reach; /* the highest `high` of this and of all before */
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

/* Once, behind the last that is added and before the first that is looked for. */
void address_ranges_sort(struct address_ranges *ranges);

/* Gives the value of the range around `address`. false: there is none. */
bool address_ranges_find(const struct address_ranges *ranges, uint64_t address, uint64_t *value);

void address_ranges_free(struct address_ranges *ranges);

#endif
