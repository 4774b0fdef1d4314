/* Where OTEL_PROFILER_LOG_FILE lies, and whether lines can go there.
 *
 * It is opened anew for each line, and the program may have gone to another folder by then: the
 * name means the place where the program was started. Context: calm.
 */
#ifndef OTELPROF_LOG_FILE_H
#define OTELPROF_LOG_FILE_H

#include <stddef.h>

/* `name` as an absolute path, written to `path` if it is not one; as it is where the working
 * directory is not known or there is no room. "" stays "". */
const char *log_file_absolute(const char *name, char *path, size_t size);

/* What is wrong with the name (own_file.h), for whoever would use it; NULL: nothing is known to be.
 * It is no fault of the name if this process may not write there: a preload for a whole container
 * reaches programs of other users and in sandboxes, and their stderr must not report it. Nothing is
 * created. */
const char *log_file_problem(const char *path);

#endif
