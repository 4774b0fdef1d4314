/* Watches a file (OTEL_PROFILER_CONTROL_FILE): settings in the file hold as long as they stand
 * there.
 *
 * The file is checked once a second with one system call, and read again if it has changed or is
 * another file: if a ConfigMap changes, its symbolic link leads to another inode. File systems
 * count the time of a change in ticks, of up to two seconds: so the next three checks after a
 * change read the file again, and compare its contents. The result depends only on the present
 * contents, so that processes that start later get the same settings:
 * - a wrong line is ignored, and the others hold;
 * - a file that is missing or refused sets nothing;
 * - a file is refused unless only root and the process's user can write or replace it
 *   (files/trusted_file.h). A refused file is tried again at each check, because the fault may lie
 *   in a folder.
 * If the program has changed its root, the file cannot be checked, and its last contents hold.
 * Errors are logged once per change, as warnings by one process of a tree only.
 *
 * Context of all: flush.
 */
#ifndef OTELPROF_CONTROL_FILE_H
#define OTELPROF_CONTROL_FILE_H

#include "harvest.h"
#include "settable.h"

#include <stdbool.h>
#include <stdint.h>

/* Identifies the file. Equal values mean that the file has not changed. If the file is missing, all
 * members but `error` are 0. */
struct file_seen {
    uint64_t device;
    uint64_t inode;
    uint64_t size;
    uint64_t modified_nano; /* `changed_nano` also covers owner, mode and links */
    uint64_t changed_nano;
    int error; /* errno of statx(2); 0: the file exists */
};

struct control_file {
    const struct capture_api *api;
    const char *path; /* path in the configuration; "": none */
    struct file_seen seen;
    uint64_t contents;   /* hash of the last contents that were read; 0: none */
    unsigned rereads;    /* number of checks to come that read the file even if it is unchanged */
    const char *refusal; /* why the file that exists is refused, a constant text; NULL: it is not */
    uint64_t next;       /* time of the next check, CLOCK_MONOTONIC, ns; UINT64_MAX: never */
    bool hidden;         /* the path was not usable at the last check */
    bool has_chosen_reporter;
    bool reports_problems; /* this process logs warnings */
    struct overlay overlay;
};

/* Prepares the watch. The first check is due at once. */
struct control_file control_file_open(const struct capture_api *api);

/* Checks the file, even if no check is due. Returns true if the file or its contents have changed;
 * then the overlay may differ. */
bool control_file_poll(struct control_file *file);

#endif
