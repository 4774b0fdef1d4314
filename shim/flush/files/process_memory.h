/* Reads the memory that the process uses and its own limits of it, from statm and limits in /proc
 * (proc(5)), and lists its control groups, whose memory group_memory.h reads.
 *
 * All users of these texts call this file. Context of all: flush.
 */
#ifndef OTELPROF_PROCESS_MEMORY_H
#define OTELPROF_PROCESS_MEMORY_H

#include "kernel_text.h"

#include <stdbool.h>
#include <stdint.h>

/* Holds sizes in bytes. */
struct process_memory {
    uint64_t space;    /* addresses, which RLIMIT_AS limits */
    uint64_t data;     /* private writable memory and stack; RLIMIT_DATA limits the former */
    uint64_t resident; /* memory in use, pages of files included */
};

/* Holds soft limits in bytes; UINT64_MAX: there is no limit, or it is not known. */
struct process_limits {
    uint64_t space; /* RLIMIT_AS */
    uint64_t data;  /* RLIMIT_DATA */
};

/* Is the folder in which the kernel's control groups are mounted. */
#define CONTROL_GROUPS_MOUNT "/sys/fs/cgroup"

/* Read the sizes, the limits, and the list of control groups (control_groups.h). Return false if
 * the file cannot be read or has another form, or if no file may be opened by its path (by_path.h).
 * So a caller that has a list of groups may read the groups' files. */
bool process_memory_read(struct process_memory *memory);
bool process_limits_read(struct process_limits *limits);
bool process_groups_read(char groups[static KERNEL_TEXT_BYTES]);

/* --- parts of the functions above: pure --- */

/* Parses the text of /proc/PID/statm. Returns false for anything else. */
bool process_memory_parse(const char *statm, struct process_memory *memory);

/* Parses the text of /proc/PID/limits. */
struct process_limits process_limits_parse(const char *limits);

#endif
