/* Reads the machine administrator's settings of the profiler, in files of root's:
 *
 *   /etc/opentelemetry/otelprof/
 *     disabled          the kill switch: if it exists, nothing is profiled
 *     conf.d/NAME.conf  settings (config_file.h), read from the last name to the first
 *     otelprof.conf     read after them: the first file that sets a name counts
 *   /run/opentelemetry/otelprof/
 *     disabled          the kill switch until the next boot
 *
 * Every process with the profiler checks for these files first, so each check is one system call.
 * Without files that is openat() only; files need fstat(), read(), getdents64() and close(), and
 * newfstatat() if no descriptor is left for a kill switch. An earlier filter must allow these calls
 * (allowed_calls.def), because the loader itself does not make all of them. They are bare system
 * calls, because other preloads may replace open(). A file of settings is read only if no user but
 * root can have written it: it is a regular file, it and its folder belong to root, and neither
 * group nor others can write to them. No link to a file is followed. In a user namespace without
 * root these files belong to the overflow user, and are not read. Up to three descriptors are open
 * during the reading. Context: calm, at start, once.
 */
#ifndef OTELPROF_HOST_FILES_H
#define OTELPROF_HOST_FILES_H

#include "config_file.h"

#include <stdbool.h>

enum {
    HOST_FILE_MOST = 16384, /* files with more bytes are not read */
    HOST_FILES_MOST = 32,   /* number of files of conf.d that are read at most */
    HOST_TEXT_MOST = 65536, /* bytes of all files that are kept at most */
    HOST_LINES_MOST = 256,  /* number of settings of all files that are kept at most */
};

/* Opens the folder in /etc. Returns its descriptor, or -errno. */
int host_files_open(void);
void host_files_close(int folder);

/* Returns the path of a kill switch that exists, or NULL. `folder`: result of host_files_open(). */
const char *host_files_kill_switch(int folder);

/* Returns the settings of all files, in the order in which they are read; their texts are valid for
 * the life of the process. `warn` gets a sentence for each file and line that is refused, `note`
 * for each file that was read or that this user may not read. */
const struct config_lines *host_files_read(int folder, config_warn *warn, config_warn *note);

/* Returns true if all files could be checked. Returns false if the process had no descriptor or
 * memory left for that: then a file that was not read may disable the profiler. */
bool host_files_are_known(void);

#endif
