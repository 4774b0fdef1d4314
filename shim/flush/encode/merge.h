/* Merges one interval's samples: equal stacks of one thread become one item with sums.
 *
 * harvest.visit() delivers samples one by one, from many threads; equal ones (kind, thread, name,
 * flags, age, interval, context, wait, holder's name, frames) are added up here, in an arena that
 * lives for one cycle. Before that, libunwind finishes the stacks that the walker left unfinished.
 * Context: flush.
 */
#ifndef OTELPROF_MERGE_H
#define OTELPROF_MERGE_H

#include "arena.h"
#include "harvest.h"
#include "intern.h"

struct merge {
    struct arena arena;
    struct intern index;
    struct arena_list items; /* struct harvest_sample, finished, in order of first appearance */
    /* struct exported_context by the item's number, NULL: none; the list is empty until
     * contexts_name() */
    struct arena_list contexts;
    size_t context_count;     /* number of different contexts */
    uint64_t finished_stacks; /* number of stacks that libunwind followed to their end */
};

/* Harvests through `api` into an empty merge. Returns false if memory ran out on the way: the lost
 * samples have been counted as DROP_ENCODE. */
bool merge_harvest(struct merge *merge, const struct capture_api *api);

/* Harvests one child that ended before it had a helper into an empty merge. Returns false if there
 * is no such child. */
bool merge_ended_child(struct merge *merge, const struct capture_api *api,
                       struct ended_child *child);

/* Joins items that differ only in their recorded contexts and whose exported context in `contexts`
 * is the same object. Afterwards merge_harvest() must not be called for this merge. */
void merge_unite(struct merge *merge);

/* Keeps the items for which `choose` returns true, in their order. Afterwards merge_harvest() must
 * not be called for this merge. */
typedef bool merge_choice(const void *arg, const struct harvest_sample *item);
void merge_keep(struct merge *merge, merge_choice *choose, const void *arg);

void merge_free(struct merge *merge);

/* Returns a bit for each kind of snapshot that has samples. Context: flush. */
unsigned merge_snapshots(const struct merge *merge);

#endif
