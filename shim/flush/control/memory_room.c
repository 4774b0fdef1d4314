#include "memory_room.h"

#include "files/by_path.h"
#include "files/group_memory.h"
#include "files/kernel_text.h"
#include "process_file.h"
#include "text_numbers.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

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

/* --- the process's own limits --- */

/* Returns the bytes that a limit of /proc/PID/limits leaves; UINT64_MAX: the limit is missing or
 * has no number ("unlimited"). */
static uint64_t left_of(const char *limits, const char *key, uint64_t used) {
    const char *const value = process_text_value(limits, key, ' ');
    uint64_t limit;
    if (!value || !number_read(value + strspn(value, " "), 10, &limit))
        return UINT64_MAX;
    return limit > used ? limit - used : 0;
}

uint64_t memory_room_of_limits(const char *limits, const char *statm) {
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    unsigned long long size;
    unsigned long long data;
    if (sscanf(statm, "%llu %*u %*u %*u %*u %llu", &size, &data) != 2)
        return UINT64_MAX;
    const uint64_t space = left_of(limits, "Max address space", size * page);
    const uint64_t own = left_of(limits, "Max data size", data * page);
    return space < own ? space : own;
}

uint64_t memory_room_of_program(void) {
    char limits[KERNEL_TEXT_BYTES];
    char statm[KERNEL_TEXT_BYTES];
    const uint64_t of_groups = memory_room();
    if (!may_open_by_path() || !kernel_text("/proc/self", "limits", limits) ||
        !kernel_text("/proc/self", "statm", statm))
        return of_groups;
    const uint64_t own = memory_room_of_limits(limits, statm);
    return own < of_groups ? own : of_groups;
}
