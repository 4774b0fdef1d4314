/* What the process's control groups say of their memory: memory.max of cgroup v2,
 * memory.limit_in_bytes of v1, of the process's group and of each above it that can be seen
 * (control_groups.h).
 *
 * Files are read when they are asked for: memory.stat, for which the kernel adds up all below the
 * group, only where somebody needs to know. Context: flush.
 */
#ifndef OTELPROF_GROUP_MEMORY_H
#define OTELPROF_GROUP_MEMORY_H

#include <stdint.h>

struct group_memory {
    const char *folder; /* valid during the visit */
    const struct memory_version *version;
    uint64_t limit; /* bytes; above it the kernel ends a process. UINT64_MAX: none */
    uint64_t usage; /* bytes, pages of files among them. UINT64_MAX: not known */
};

typedef void group_memory_visit(void *arg, const struct group_memory *memory);

/* Visits them where control groups are mounted at `mount`; `groups` is the text of
 * /proc/PID/cgroup.
 */
void group_memory_each(const char *mount, const char *groups, group_memory_visit *visit, void *arg);

/* Bytes from which the kernel slows the group down (memory.high). UINT64_MAX: none. */
uint64_t group_memory_high(const struct group_memory *memory);

/* Usage without what the kernel can take back at once: pages of files. */
uint64_t group_memory_used(const struct group_memory *memory);

/* How often usage has met a limit so far; 0: it is not told. */
uint64_t group_memory_hits(const struct group_memory *memory);

/* For how long a task at least has waited for memory so far, in microseconds (PSI); 0: it is not
 * told. */
uint64_t group_memory_stalled(const struct group_memory *memory);

#endif
