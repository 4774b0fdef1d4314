#include "address_ranges.h"

#include <stdlib.h>

enum { FIRST_ROOM = 64 };

static bool address_ranges_have_room(struct address_ranges *ranges) {
    if (ranges->count < ranges->room)
        return true;
    const size_t room = ranges->room ? 2 * ranges->room : FIRST_ROOM;
    struct address_range *const items = reallocarray(ranges->items, room, sizeof *items);
    if (!items)
        return false;
    ranges->items = items;
    ranges->room = room;
    return true;
}

void address_ranges_add(struct address_ranges *ranges, uint64_t low, uint64_t high,
                        uint64_t value) {
    if (low < high && address_ranges_have_room(ranges))
        ranges->items[ranges->count++] = (struct address_range){low, high, high, value};
}

static int by_low(const void *a, const void *b) {
    const struct address_range *const left = a;
    const struct address_range *const right = b;
    return (left->low > right->low) - (left->low < right->low);
}

void address_ranges_sort(struct address_ranges *ranges) {
    if (!ranges->count)
        return;
    qsort(ranges->items, ranges->count, sizeof *ranges->items, by_low);
    for (size_t i = 1; i < ranges->count; i++)
        if (ranges->items[i].reach < ranges->items[i - 1].reach)
            ranges->items[i].reach = ranges->items[i - 1].reach;
}

/* Returns how many ranges begin at `address` or before. */
static size_t begun_at(const struct address_ranges *ranges, uint64_t address) {
    size_t low = 0;
    size_t high = ranges->count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (ranges->items[middle].low <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

bool address_ranges_find(const struct address_ranges *ranges, uint64_t address, uint64_t *value) {
    for (size_t i = begun_at(ranges, address); i > 0 && ranges->items[i - 1].reach > address; i--) {
        if (ranges->items[i - 1].high <= address)
            continue;
        *value = ranges->items[i - 1].value;
        return true;
    }
    return false;
}

void address_ranges_free(struct address_ranges *ranges) {
    free(ranges->items);
    *ranges = (struct address_ranges){0};
}
