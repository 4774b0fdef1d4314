#include "memory_room.h"

#include "files/control_groups.h"
#include "files/kernel_text.h"

#include <stddef.h>

struct version {
    struct group_hierarchy hierarchy;
    const char *limit;
    const char *usage;
    const char *reclaimable[2]; /* lines of memory.stat */
};
static const struct version versions[] = {
    {{"", ""}, "memory.max", "memory.current", {"inactive_file", "active_file"}},
    {{"memory", "/memory"},
     "memory.limit_in_bytes",
     "memory.usage_in_bytes",
     {"total_inactive_file", "total_active_file"}},
};

static uint64_t reclaimable_in(const struct version *version, const char *folder) {
    char text[KERNEL_TEXT_BYTES];
    if (!kernel_text(folder, "memory.stat", text))
        return 0;
    return kernel_value(text, version->reclaimable[0]) +
           kernel_value(text, version->reclaimable[1]);
}

static uint64_t room_of_group(const struct version *version, const char *folder) {
    const uint64_t limit = kernel_number(folder, version->limit);
    const uint64_t usage = kernel_number(folder, version->usage);
    if (limit == UINT64_MAX || usage == UINT64_MAX)
        return UINT64_MAX;
    const uint64_t reclaimable = reclaimable_in(version, folder);
    const uint64_t used = usage > reclaimable ? usage - reclaimable : 0;
    return limit > used ? limit - used : 0;
}

struct search {
    const struct version *version;
    uint64_t least;
};

static void visit(void *arg, const char *folder) {
    struct search *const search = arg;
    const uint64_t room = room_of_group(search->version, folder);
    if (room < search->least)
        search->least = room;
}

uint64_t memory_room_in(const char *mount, const char *groups) {
    struct search search = {.least = UINT64_MAX};
    for (size_t i = 0; i < sizeof versions / sizeof *versions; i++) {
        search.version = &versions[i];
        control_groups_visit(mount, groups, versions[i].hierarchy, visit, &search);
    }
    return search.least;
}

uint64_t memory_room(void) {
    char groups[KERNEL_TEXT_BYTES];
    return kernel_text("/proc/self", "cgroup", groups) ? memory_room_in("/sys/fs/cgroup", groups)
                                                       : UINT64_MAX;
}
