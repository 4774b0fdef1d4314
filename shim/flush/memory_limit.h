/* How near the process is to a limit of memory: those of its control groups (group_memory.h), and
 * RLIMIT_AS and RLIMIT_DATA, its own.
 *
 * A limit is near where nine tenths of it are used, of a small one where less is left than an
 * export may need (flush_has_room). Pages of files do not count: the kernel takes them back first.
 * Context: flush.
 */
#ifndef OTELPROF_MEMORY_LIMIT_H
#define OTELPROF_MEMORY_LIMIT_H

#include <stdint.h>

/* The limit that the process is nearest to. */
struct memory_limit {
    const char *of;   /* what sets it, as a message says it; NULL: there is no limit */
    uint64_t name;    /* of the control group: a hash; 0: the limit is the process's */
    uint64_t limit;   /* bytes */
    uint64_t used;    /* bytes */
    double nearness;  /* 1: the limit is near; proportional to what is used */
    uint64_t hits;    /* how often the group's usage has met a limit so far, */
    uint64_t stalled; /* and for how long its tasks have waited for memory, microseconds: where */
                      /* it is not far away; otherwise 0 */
};

/* From this nearness on the last two are read: three quarters of a limit are used. */
#define MEMORY_NOT_FAR (0.75 / 0.9)

/* Now, as far as paths may be followed (by_path.h). */
struct memory_limit memory_limit_read(void);

/* --- what it is made of: pure but for files below `mount` --- */

/* Of control groups that are mounted at `mount`; `groups` is the text of /proc/PID/cgroup. */
struct memory_limit memory_limit_of_groups(const char *mount, const char *groups);

/* Of the process itself; the texts of /proc/PID/limits and /proc/PID/statm. */
struct memory_limit memory_limit_of_process(const char *limits, const char *statm);

#endif
