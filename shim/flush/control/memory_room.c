#include "memory_room.h"

#include "files/group_memory.h"
#include "files/kernel_text.h"

static void memory_room_visit(void *arg, const struct group_memory *memory) {
    uint64_t *const least = arg;
    if (memory->limit == UINT64_MAX || memory->usage == UINT64_MAX)
        return;
    const uint64_t used = group_memory_used(memory);
    const uint64_t room = memory->limit > used ? memory->limit - used : 0;
    if (room < *least)
        *least = room;
}

uint64_t memory_room_in(const char *mount, const char *groups) {
    uint64_t least = UINT64_MAX;
    group_memory_each(mount, groups, memory_room_visit, &least);
    return least;
}

uint64_t memory_room(void) {
    char groups[KERNEL_TEXT_BYTES];
    return kernel_text("/proc/self", "cgroup", groups) ? memory_room_in("/sys/fs/cgroup", groups)
                                                       : UINT64_MAX;
}
