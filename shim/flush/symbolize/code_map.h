/* Maps addresses to pieces of generated code, as a JIT compiler reports them one by one. Later code
 * replaces earlier code at the same place.
 *
 * The map holds sorted ranges that do not overlap, 16 bytes each, found by bisection. Additions
 * wait in a batch; a batch is merged in one pass, so a million pieces in any order cost a million
 * times the logarithm. If a runtime reports pieces without end, no more than MAX_CODE_RANGES are
 * kept. Context: flush.
 */
#ifndef OTELPROF_CODE_MAP_H
#define OTELPROF_CODE_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bounds the ranges: 8 MiB. The largest perf map seen, of a .NET server, has 200,000 lines. */
enum { MAX_CODE_RANGES = 1 << 19 };

struct code_range_entry {
    uint64_t start;
    uint32_t size;
    uint32_t value;
};

/* Holds the map. Initially zero: an empty map. */
struct code_map {
    struct code_range_entry *entries; /* sorted, disjoint */
    size_t count;
    struct code_range_entry *batch; /* ranges in the order of their arrival */
    size_t batched;
};

/* Adds code of `size` bytes at `start`. Pieces without a byte, of 4 GiB or more, or beyond the end
 * of the address space are ignored. Returns false if there is no room, or no memory. */
bool code_map_add(struct code_map *map, uint64_t start, uint64_t size, uint32_t value);

/* Stores the value of the piece around `address` that was added last. Returns false if there is
 * none, or no memory to merge the batch. */
bool code_map_find(struct code_map *map, uint64_t address, uint32_t *value);

/* Empties the map, which stays usable afterwards. */
void code_map_free(struct code_map *map);

#endif
