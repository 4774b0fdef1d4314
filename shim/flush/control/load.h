/* Measures how busy processors are: the machine's, and the share that a control group may use.
 *
 * The kernel's counters only grow, so two readings are compared. All processors of the machine
 * count alike. Time that a hypervisor gave to other guests (steal) counts as busy, waiting for
 * disks does not. A control group counts, relative to its limit, only if its CPU time is limited
 * (cpu.max of v2, cpu.cfs_quota_us of v1), because without a limit it cannot be busier than the
 * machine. Context of all: flush.
 */
#ifndef OTELPROF_LOAD_H
#define OTELPROF_LOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MOST_GROUPS = 16 };

/* Describes a control group with a limit. */
struct group_load {
    uint64_t name;      /* hash of its folder */
    uint64_t used_nano; /* CPU time so far */
    double limit;       /* number of processors */
};

struct load {
    uint64_t nano; /* time of the reading, CLOCK_MONOTONIC */
    uint64_t busy; /* ticks so far, of all processors together */
    uint64_t all;
    size_t group_count;
    struct group_load groups[MOST_GROUPS];
};

/* Reads the load of the machine and of this process's groups. Returns false if the machine's load
 * cannot be read, or if paths must not be used (by_path.h). */
bool load_read(struct load *load);

/* Returns the highest load of the machine and the groups between two readings, in percent.
 * Negative: unknown. */
double load_percent(const struct load *before, const struct load *after);

/* --- parts of load_read(): pure, except for files below `mount` --- */

/* Parses the first line of /proc/stat. Returns false for anything else. */
bool load_parse_machine(const char *text, struct load *load);

/* Reads the process's group and its ancestors. `mount` is the mount point of control groups,
 * `groups` the text of /proc/PID/cgroup. */
void load_read_groups(const char *mount, const char *groups, struct load *load);

#endif
