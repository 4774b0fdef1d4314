/* The text of a configuration file that an environment variable names.
 *
 * It is read with the process's own rights, as the variable's other files (certificates) are: a
 * regular file of bounded size, at the end of whatever links, for a ConfigMap is one. Nothing
 * waits: not for the other end of a FIFO, and a device is not opened. Context: flush.
 */
#ifndef OTELPROF_DECLARED_FILE_H
#define OTELPROF_DECLARED_FILE_H

#include <stddef.h>

struct declared_file {
    char *text; /* the caller frees it */
    size_t size;
};

/* NULL: it was read; otherwise what is wrong with it, a constant. */
const char *declared_file_read(const char *path, size_t most, struct declared_file *file);

/* The same of a descriptor, which it closes. */
const char *declared_file_take(int descriptor, size_t most, struct declared_file *file);

/* "does not exist": what errno says of a file, a constant. */
const char *file_problem_of(int error);

#endif
