#include "code_map.h"

#include <stdlib.h>
#include <string.h>

enum { BATCH = 1 << 14 };

/* Merges two sorted lists of disjoint ranges. */
struct overlay {
    struct code_range_entry *out;
    size_t count;
    const struct code_range_entry *older;
    size_t older_left;
    uint64_t covered; /* the newer ranges cover all addresses below this one */
};

static uint64_t end_of(const struct code_range_entry *entry) {
    return entry->start + entry->size;
}

/* Adds the older ranges behind the covered part, up to `limit`. */
static void put_older(struct overlay *o, uint64_t limit) {
    for (; o->older_left && o->older->start < limit; o->older++, o->older_left--) {
        const uint64_t older_end = end_of(o->older);
        const uint64_t start = o->older->start > o->covered ? o->older->start : o->covered;
        const uint64_t end = older_end < limit ? older_end : limit;
        if (start < end)
            o->out[o->count++] =
                (struct code_range_entry){start, (uint32_t)(end - start), o->older->value};
        if (older_end > limit)
            return;
    }
}

/* Merges the two lists into `out`, which has room for older_count + 2 * newer_count ranges: a newer
 * range may split an older range. Returns the number of ranges. */
static size_t lay_over(struct code_range_entry *out, const struct code_range_entry *older,
                       size_t older_count, const struct code_range_entry *newer,
                       size_t newer_count) {
    struct overlay o = {.out = out, .older = older, .older_left = older_count};
    for (size_t i = 0; i < newer_count; i++) {
        put_older(&o, newer[i].start);
        o.out[o.count++] = newer[i];
        o.covered = end_of(&newer[i]);
    }
    put_older(&o, UINT64_MAX);
    return o.count;
}

/* --- a batch --- */

/* Divides the batch into runs, each of disjoint ranges in ascending order, because a JIT mostly
 * allocates upwards. Pairs of adjacent runs are merged until one is left. `ends`: the ends of runs,
 * in `from`. */
struct runs {
    struct code_range_entry *from;
    struct code_range_entry *to;
    uint32_t ends[BATCH];
    size_t count;
};

static void find_runs(struct runs *runs, size_t count) {
    uint64_t reached = 0;
    for (size_t i = 0; i < count; i++) {
        if (i == 0 || runs->from[i].start < reached)
            runs->count++;
        runs->ends[runs->count - 1] = (uint32_t)i + 1;
        reached = end_of(&runs->from[i]);
    }
}

static void join_pairs(struct runs *runs) {
    size_t joined = 0;
    size_t from = 0;
    size_t to = 0;
    for (size_t i = 0; i < runs->count; i += 2) {
        const size_t middle = runs->ends[i];
        const size_t end = i + 1 < runs->count ? runs->ends[i + 1] : middle;
        to += lay_over(runs->to + to, runs->from + from, middle - from, runs->from + middle,
                       end - middle);
        runs->ends[joined++] = (uint32_t)to;
        from = end;
    }
    struct code_range_entry *const other = runs->from;
    runs->from = runs->to;
    runs->to = other;
    runs->count = joined;
}

/* Merges all runs: n ranges with any overlap have at most 2n parts. */
static bool sort_batch(struct runs *runs, const struct code_map *map) {
    runs->from = calloc(2 * map->batched, sizeof *runs->from);
    runs->to = calloc(2 * map->batched, sizeof *runs->to);
    if (!runs->from || !runs->to)
        return false;
    memcpy(runs->from, map->batch, map->batched * sizeof *map->batch);
    find_runs(runs, map->batched);
    while (runs->count > 1)
        join_pairs(runs);
    return true;
}

static bool lay_batch_over(struct code_map *map, const struct runs *batch) {
    const size_t newer = batch->ends[0];
    struct code_range_entry *const entries = calloc(map->count + 2 * newer, sizeof *entries);
    if (!entries)
        return false;
    map->count = lay_over(entries, map->entries, map->count, batch->from, newer);
    free(map->entries);
    map->entries = entries;
    return true;
}

/* Merges the batch into the map. Returns false if there is no memory: then the batch is lost. */
static bool code_map_merge_batch(struct code_map *map) {
    if (map->batched == 0)
        return true;
    struct runs *const runs = calloc(1, sizeof *runs);
    const bool merged = runs && sort_batch(runs, map) && lay_batch_over(map, runs);
    if (runs) {
        free(runs->from);
        free(runs->to);
    }
    free(runs);
    free(map->batch);
    map->batch = NULL;
    map->batched = 0;
    return merged;
}

bool code_map_add(struct code_map *map, uint64_t start, uint64_t size, uint32_t value) {
    if (size == 0 || size > UINT32_MAX || start > UINT64_MAX - size)
        return true;
    if (map->batched == BATCH && !code_map_merge_batch(map))
        return false;
    if (map->count >= MAX_CODE_RANGES)
        return false;
    if (!map->batch)
        map->batch = calloc(BATCH, sizeof *map->batch);
    if (!map->batch)
        return false;
    map->batch[map->batched++] = (struct code_range_entry){start, (uint32_t)size, value};
    return true;
}

bool code_map_find(struct code_map *map, uint64_t address, uint32_t *value) {
    size_t low = 0;
    if (!code_map_merge_batch(map))
        return false;
    size_t high = map->count; /* finds the last range that begins at `address` or before */
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (map->entries[middle].start <= address)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == 0 || address - map->entries[low - 1].start >= map->entries[low - 1].size)
        return false;
    *value = map->entries[low - 1].value;
    return true;
}

void code_map_free(struct code_map *map) {
    free(map->entries);
    free(map->batch);
    *map = (struct code_map){0};
}
