/* One interval's samples, merged: equal stacks of one thread become one line with sums.
 *
 * harvest() hands samples over one by one, from many threads; what is equal (kind, thread, name,
 * flags, age, interval, context, wait, frames) is added up here, in an arena that lives for one
 * cycle. Stacks that the walker left unfinished are finished first. Context: flush.
 */
#ifndef OTELPROF_MERGE_H
#define OTELPROF_MERGE_H

#include "arena.h"
#include "harvest.h"
#include "intern.h"

struct merge {
    struct arena arena;
    struct intern index;
    struct arena_list items;    /* struct harvest_sample, finished, in order of first appearance */
    struct arena_list contexts; /* struct exported_context by the item's number, NULL: none; empty
                                   until contexts_name() */
    size_t context_count;       /* different ones */
};

/* Harvests through `api` into an empty merge. Returns false if memory ran out on the way: what is
 * missing has been counted as DROP_ENCODE. */
bool merge_harvest(struct merge *merge, const struct capture_api *api);

/* Makes one of items that differ in nothing but their contexts as they were recorded: what is
 * exported of them, in `contexts`, is the same object. Nothing can be harvested into it any more.
 */
void merge_unite(struct merge *merge);

/* Leaves those items that `choose` says true of, in their order. Nothing can be harvested into it
 * any more. */
typedef bool merge_choice(const void *arg, const struct harvest_sample *item);
void merge_keep(struct merge *merge, merge_choice *choose, const void *arg);

void merge_free(struct merge *merge);

#endif
