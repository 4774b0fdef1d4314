#include "memory_room.h"

#include "files/group_memory.h"
#include "files/process_memory.h"

#include <stddef.h>

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
    return process_groups_read(groups) ? memory_room_in(CONTROL_GROUPS_MOUNT, groups) : UINT64_MAX;
}

/* --- the process's own limits --- */

/* Returns the bytes that a limit leaves; UINT64_MAX: there is no limit. */
static uint64_t left_of(uint64_t limit, uint64_t used) {
    if (limit == UINT64_MAX)
        return UINT64_MAX;
    return limit > used ? limit - used : 0;
}

uint64_t memory_room_of_limits(struct process_limits limits, struct process_memory memory) {
    const uint64_t space = left_of(limits.space, memory.space);
    const uint64_t data = left_of(limits.data, memory.data);
    return space < data ? space : data;
}

uint64_t memory_room_of_program(void) {
    struct process_limits limits;
    struct process_memory memory;
    const uint64_t of_groups = memory_room();
    if (!process_limits_read(&limits) || !process_memory_read(&memory))
        return of_groups;
    const uint64_t own = memory_room_of_limits(limits, memory);
    return own < of_groups ? own : of_groups;
}
