/* Reads the memory limits and usage of the process's control groups: memory.max of cgroup v2,
 * memory.limit_in_bytes of v1, of the process's group and each visible ancestor (control_groups.h).
 *
 * Each file is read when its value is requested. memory.stat makes the kernel add up the whole
 * subtree, so this module reads it only if a caller requests a value from it. Context: flush.
 */
#ifndef OTELPROF_GROUP_MEMORY_H
#define OTELPROF_GROUP_MEMORY_H

#include <stdint.h>

struct group_memory {
    const char *folder; /* valid during the visit */
    const struct memory_version *version;
    uint64_t limit; /* bytes at which the kernel kills a process. UINT64_MAX: there is no limit */
    uint64_t usage; /* bytes, page cache included. UINT64_MAX: not known */
};

typedef void group_memory_visit(void *arg, const struct group_memory *memory);

/* Visits the process's group and its ancestors, in control groups that are mounted at `mount`;
 * `groups` is the text of /proc/PID/cgroup.
 */
void group_memory_each(const char *mount, const char *groups, group_memory_visit *visit, void *arg);

/* Returns the bytes from which the kernel slows the group down (memory.high). UINT64_MAX: none. */
uint64_t group_memory_high(const struct group_memory *memory);

/* Returns the usage without the page cache, which the kernel can take back at once. */
uint64_t group_memory_used(const struct group_memory *memory);

/* Returns the number of times that usage has reached a limit; 0 if the kernel does not report
 * it. */
uint64_t group_memory_hits(const struct group_memory *memory);

/* Returns the microseconds in which at least one task has waited for memory so far (PSI); 0 if the
 * kernel does not report them. */
uint64_t group_memory_stalled(const struct group_memory *memory);

#endif
