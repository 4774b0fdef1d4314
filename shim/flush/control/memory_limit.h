/* Measures how near the process is to its memory limits: the limits of its control groups
 * (group_memory.h), and its own RLIMIT_AS and RLIMIT_DATA.
 *
 * A limit is near if nine tenths of it are used; a small limit is near if less is left than an
 * export may need (flush_has_room). File pages do not count: the kernel reclaims them first.
 * Context: flush.
 */
#ifndef OTELPROF_MEMORY_LIMIT_H
#define OTELPROF_MEMORY_LIMIT_H

#include "files/process_memory.h"

#include <stdint.h>

/* Describes the limit that the process is nearest to. */
struct memory_limit {
    const char *of;   /* name of the limit in messages; NULL: there is no limit */
    uint64_t name;    /* hash of the control group; 0: a limit of the process */
    uint64_t limit;   /* the limit in bytes */
    uint64_t used;    /* bytes in use */
    double nearness;  /* at least 1: the limit is near; proportional to the usage */
    uint64_t hits;    /* number of times that usage has reached a limit; 0 if the limit is far */
    uint64_t stalled; /* time in us that tasks have waited for memory; 0 if the limit is far */
};

/* Is the nearness below which `hits` and `stalled` are not read: three quarters of the limit are
 * used (nearness 1 stands for nine tenths). */
#define MEMORY_NOT_FAR (0.75 / 0.9)

/* Returns the limit that is nearest now. Returns no limit (`of` is NULL) if no file may be opened
 * by its path (by_path.h). */
struct memory_limit memory_limit_read(void);

/* --- parts of memory_limit_read(): pure, except for files below `mount` --- */

/* Reads control groups mounted at `mount`; `groups` is the text of /proc/PID/cgroup. */
struct memory_limit memory_limit_of_groups(const char *mount, const char *groups);

/* Returns the nearer of the process's own limits; a limit of 0 counts as none. */
struct memory_limit memory_limit_of_process(struct process_limits limits,
                                            struct process_memory memory);

#endif
