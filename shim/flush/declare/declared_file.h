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
    char *text; /* not NUL-terminated; the caller frees it; NULL: the file was not read */
    size_t size;
};

/* Reads the file at `path`, of at most `most` bytes. Returns NULL, or a constant that describes the
 * error and follows the file's name in a message: "is a folder". */
const char *declared_file_read(const char *path, size_t most, struct declared_file *file);

/* Reads the file of a descriptor as declared_file_read() does, and closes the descriptor. */
const char *declared_file_take(int descriptor, size_t most, struct declared_file *file);

/* Describes an errno of a file operation, for example "does not exist"; a constant. */
const char *file_problem_text(int error);

#endif
