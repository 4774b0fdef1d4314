/* Determines how much memory the process may still use before the kernel kills a process of its
 * control group: memory.max of cgroup v2, memory.limit_in_bytes of v1, of the process's group and
 * its visible ancestors. Memory that the kernel can reclaim at once (file pages) counts as free.
 * Context: flush. */
#ifndef OTELPROF_MEMORY_ROOM_H
#define OTELPROF_MEMORY_ROOM_H

#include "files/process_memory.h"

#include <stdint.h>

/* Returns the number of bytes; UINT64_MAX: no limit is known, or no file may be opened by its path
 * (by_path.h). */
uint64_t memory_room(void);

/* Returns the same, but at most the rest of the process's RLIMIT_AS and RLIMIT_DATA, beyond which
 * the program's own calls fail. Is for memory that may be refused, as that of responses. An export
 * ignores these two limits, because its memory is given back at once. */
uint64_t memory_room_of_program(void);

/* Returns the number of bytes for control groups that are mounted at `mount`; `groups`: the text of
 * /proc/PID/cgroup. */
uint64_t memory_room_in(const char *mount, const char *groups);

/* Returns the number of bytes that RLIMIT_AS and RLIMIT_DATA leave; UINT64_MAX: no limit is
 * known. */
uint64_t memory_room_of_limits(struct process_limits limits, struct process_memory memory);

#endif
