/* How busy processors are: those of the machine, and those that a control group may use.
 *
 * The kernel counts for ever, so two readings are compared. Of the machine, all processors count
 * alike; time that a hypervisor gave to others (steal) was busy, waiting for disks was not. A
 * control group counts where its CPU time is limited (cpu.max of version 2, cpu.cfs_quota_us of
 * version 1), against that limit; without one it cannot be busier than the machine.
 * Context of all: flush.
 */
#ifndef OTELPROF_LOAD_H
#define OTELPROF_LOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MOST_GROUPS = 16 };

/* A control group with a limit. */
struct group_load {
    uint64_t name;      /* of its folder: a hash */
    uint64_t used_nano; /* CPU time so far */
    double limit;       /* in processors */
};

struct load {
    uint64_t nano; /* CLOCK_MONOTONIC, when it was read */
    uint64_t busy; /* ticks so far, of all processors together */
    uint64_t all;
    size_t group_count;
    struct group_load groups[MOST_GROUPS];
};

/* Of this process, now. false: it cannot be read, or the paths lead elsewhere (by_path.h). */
bool load_read(struct load *load);

/* The busiest of them from one reading to the next, in percent; less than 0: nothing is known. */
double load_percent(const struct load *before, const struct load *after);

/* --- what load_read() is made of: pure but for files below `mount` --- */

/* The first line of /proc/stat. false: it is something else. */
bool load_parse_machine(const char *text, struct load *load);

/* The process's group and those above it where control groups are mounted at `mount`; `groups` is
 * the text of /proc/PID/cgroup. */
void load_read_groups(const char *mount, const char *groups, struct load *load);

#endif
