/* What the machine's administrator says about the profiler, in files of root's:
 *
 *   /etc/opentelemetry/otelprof/
 *     disabled          the kill switch: where it exists nothing is profiled
 *     conf.d/NAME.conf  settings (config_file.h), from the last name to the first, and then
 *     otelprof.conf     that: the first file that sets a name counts
 *   /run/opentelemetry/otelprof/
 *     disabled          the kill switch until the next boot
 *
 * Every process with the profiler in it looks for them, before anything else, so each look is one
 * system call. Without files it is openat() alone; files take fstat(), read(), getdents64() and
 * close(), and newfstatat() where no descriptor is left for a kill switch. A filter that was there
 * first must let them pass (allowed_calls.def): the loader makes not all of them itself. They are
 * made bare: other preloads may have their own open().
 * A file of settings is read only if nobody but root can have written it: it is a regular file, its
 * folder and it belong to root, and neither group nor others can write to them. No link is followed
 * to them. In a user namespace that has no root they belong to the overflow user, and are not read.
 * A descriptor is used meanwhile, and another one above it. Context: calm, at start, once.
 */
#ifndef OTELPROF_HOST_FILES_H
#define OTELPROF_HOST_FILES_H

#include "config_file.h"

#include <stdbool.h>

enum {
    HOST_FILE_MOST = 16384, /* bytes of a file; a larger one is not read */
    HOST_FILES_MOST = 32,   /* of conf.d */
    HOST_TEXT_MOST = 65536, /* bytes of all of them */
    HOST_LINES_MOST = 256,  /* settings in all of them */
};

/* The folder in /etc: a descriptor, or -errno. */
int host_files_open(void);
void host_files_close(int folder);

/* The path of the kill switch that is on; NULL: none is. */
const char *host_files_kill_switch(int folder);

/* The settings of all files, in that order; their texts live as long as the process. `warn` gets a
 * sentence for each file and line that is refused, `note` for each file that was read or that this
 * user may not read. */
const struct config_lines *host_files_read(int folder, config_warn *warn, config_warn *note);

/* Whether all of them could be looked for: false where the process has no descriptor or memory left
 * for it. They may say that nothing is to be profiled. */
bool host_files_are_known(void);

#endif
