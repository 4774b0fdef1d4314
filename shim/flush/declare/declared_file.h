/* Reads a configuration file that an environment variable names.
 *
 * The file is read with the process's own rights, like other files that variables name
 * (certificates). It must be a regular file of bounded size; links are followed, because a
 * ConfigMap is a link. Reading never blocks: a FIFO is not waited for, and a device is not opened.
 * Context: flush.
 */
#ifndef OTELPROF_DECLARED_FILE_H
#define OTELPROF_DECLARED_FILE_H

#include <stddef.h>

struct declared_file {
    char *text; /* the caller frees it */
    size_t size;
};

/* Reads the file at `path`. Returns NULL on success; otherwise what is wrong with the file, a
 * constant. */
const char *declared_file_read(const char *path, size_t most, struct declared_file *file);

/* Reads the file of a descriptor as declared_file_read() does, and closes the descriptor. */
const char *declared_file_take(int descriptor, size_t most, struct declared_file *file);

/* Describes an errno of a file operation, for example "does not exist"; a constant. */
const char *file_problem_text(int error);

#endif
