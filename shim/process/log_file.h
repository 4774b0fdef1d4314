/* Makes the path of OTEL_PROFILER_LOG_FILE absolute, and checks whether lines can go there.
 *
 * The file is opened again for each line, and the program may change its working directory. A
 * relative name counts from the directory in which the program was started. Context: calm.
 */
#ifndef OTELPROF_LOG_FILE_H
#define OTELPROF_LOG_FILE_H

#include <stddef.h>

/* Returns `name` as an absolute path, which is written to `path` if `name` is relative. Returns
 * `name` itself if the working directory is not known or there is no room. "" stays "". */
const char *log_file_absolute(const char *name, char *path, size_t size);

/* Returns why the file cannot be used (private_file.h); NULL: no problem is known. Missing
 * permission is no problem of the name: a preload for a whole container reaches programs of other
 * users and in sandboxes, whose stderr must not get a line for it. Creates no file. */
const char *log_file_problem(const char *path);

#endif
