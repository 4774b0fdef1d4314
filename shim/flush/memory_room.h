/* How much memory the process may still take before its control group's limit is reached, and the
 * kernel ends a process of it: memory.max of cgroup v2, memory.limit_in_bytes of v1, of the
 * process's group and of each above it that can be seen. What the kernel can take back at once
 * (pages of files) counts as free.
 * Context: flush.
 */
#ifndef OTELPROF_MEMORY_ROOM_H
#define OTELPROF_MEMORY_ROOM_H

#include <stdint.h>

/* In bytes; UINT64_MAX: no limit is known. */
uint64_t memory_room(void);

/* The same where control groups are mounted at `mount`; `groups` is the text of /proc/PID/cgroup.
 */
uint64_t memory_room_in(const char *mount, const char *groups);

#endif
