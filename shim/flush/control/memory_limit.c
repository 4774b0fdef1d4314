#include "memory_limit.h"

#include "files/group_memory.h"
#include "files/process_memory.h"
#include "hash.h"

/* Sets how much free memory an export needs, in bytes: half more than an export with its names
 * needs (cycle.c). */
static const uint64_t export_room = UINT64_C(12) << 20;

/* Separates limits from larger values, which mean "no limit": without a limit cgroup v1 shows the
 * highest number of pages that it can represent, in bytes. */
static const uint64_t no_limit = UINT64_C(1) << 60;

static uint64_t lesser(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

static double nearness(uint64_t used, uint64_t limit) {
    const uint64_t tenth = limit / 10;
    const uint64_t left = lesser(tenth > export_room ? tenth : export_room, limit / 2);
    return limit ? (double)used / (double)(limit - left) : 0;
}

static struct memory_limit nearer(const struct memory_limit *a, const struct memory_limit *b) {
    return !a->of || (b->of && b->nearness > a->nearness) ? *b : *a;
}

/* --- control groups --- */

static uint64_t limit_hash_folder(const char *folder) {
    uint64_t hash = 1;
    for (; *folder; folder++)
        hash = hash_word(hash, (unsigned char)*folder);
    return hash;
}

/* Reads details (file pages, stalls) only if they can make a difference. */
static void memory_limit_visit(void *arg, const struct group_memory *memory) {
    struct memory_limit *const nearest = arg;
    const uint64_t limit = lesser(memory->limit, group_memory_high(memory));
    if (limit >= no_limit || memory->usage == UINT64_MAX)
        return;
    struct memory_limit it = {.of = limit == memory->limit ? "the control group" : "memory.high",
                              .name = limit_hash_folder(memory->folder),
                              .limit = limit,
                              .used = memory->usage};
    if (nearness(it.used, limit) >= MEMORY_NOT_FAR)
        it.used = group_memory_used(memory);
    it.nearness = nearness(it.used, limit);
    if (it.nearness >= MEMORY_NOT_FAR) {
        it.hits = group_memory_hits(memory);
        it.stalled = group_memory_stalled(memory);
    }
    *nearest = nearer(nearest, &it);
}

struct memory_limit memory_limit_of_groups(const char *mount, const char *groups) {
    struct memory_limit nearest = {.of = NULL};
    group_memory_each(mount, groups, memory_limit_visit, &nearest);
    return nearest;
}

/* --- the process --- */

static struct memory_limit own_limit(const char *name, uint64_t limit, uint64_t used) {
    if (limit == 0 || limit == UINT64_MAX)
        return (struct memory_limit){.of = NULL};
    return (struct memory_limit){
        .of = name, .limit = limit, .used = used, .nearness = nearness(used, limit)};
}

struct memory_limit memory_limit_of_process(struct process_limits limits,
                                            struct process_memory memory) {
    const struct memory_limit space = own_limit("RLIMIT_AS", limits.space, memory.space);
    const struct memory_limit data = own_limit("RLIMIT_DATA", limits.data, memory.data);
    return nearer(&space, &data);
}

/* --- the groups and the process --- */

struct memory_limit memory_limit_read(void) {
    char groups[KERNEL_TEXT_BYTES];
    struct process_limits limits;
    struct process_memory memory;
    struct memory_limit nearest = {.of = NULL};
    if (process_groups_read(groups))
        nearest = memory_limit_of_groups(CONTROL_GROUPS_MOUNT, groups);
    if (!process_limits_read(&limits) || !process_memory_read(&memory))
        return nearest;
    const struct memory_limit own = memory_limit_of_process(limits, memory);
    return nearer(&nearest, &own);
}
