/* The watched file (OTEL_PROFILER_CONTROL_FILE): settings that hold while they stand in it.
 *
 * It is looked at once a second, by one system call, and read again when that shows another file or
 * a changed one: a ConfigMap's symbolic link leads to another inode then. What holds depends on
 * nothing but what it says now, so that processes that start later have the same:
 * - a line that is wrong is ignored, and the others hold;
 * - a file that is not there, or that is refused, sets nothing;
 * - it is refused unless only root and the process's user can write it or put another in its place
 *   (files/trusted_file.h).
 * Where it cannot be looked at, because the program has changed its root, what it said last holds.
 * What is wrong is said once for each change, by one process of a tree. Context of all: flush.
 */
#ifndef OTELPROF_CONTROL_FILE_H
#define OTELPROF_CONTROL_FILE_H

#include "harvest.h"
#include "settable.h"

#include <stdbool.h>
#include <stdint.h>

/* One file, unchanged since: all 0, but for the error, if there is none. */
struct file_seen {
    uint64_t device;
    uint64_t inode;
    uint64_t size;
    uint64_t modified_nano; /* its contents, or its owner, mode or name */
    uint64_t changed_nano;
    int error; /* errno of the look; 0: it is there */
};

struct control_file {
    const struct capture_api *api;
    const char *path; /* of the configuration; "" = none */
    struct file_seen seen;
    uint64_t next; /* when it is looked at next: CLOCK_MONOTONIC, ns; UINT64_MAX: never */
    bool hidden;   /* it was out of sight at the last look */
    bool asked_who_speaks;
    bool speaks; /* it is this process that says what is wrong */
    struct overlay overlay;
};

/* Not looked at yet; that is due at once. */
struct control_file control_file_open(const struct capture_api *api);

/* true: it has changed, and so may have what the overlay says. */
bool control_file_look(struct control_file *file);

#endif
