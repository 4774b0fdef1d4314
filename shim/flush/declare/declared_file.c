#include "declared_file.h"

#include "files/by_path.h"
#include "open_flags.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

const char *file_problem_text(int error) {
    switch (error) {
    case ENOENT:
        return "does not exist";
    case ENOTDIR:
        return "is in something that is no folder";
    case EACCES:
    case EPERM:
        return "may not be read by this process";
    case ELOOP:
        return "is a link that leads nowhere";
    case ENAMETOOLONG:
        return "is too long a name";
    case EMFILE:
    case ENFILE:
        return "cannot be opened for want of a descriptor";
    default:
        return "cannot be read";
    }
}

static const char *file_kind_problem(const struct stat *status, size_t most) {
    if (S_ISDIR(status->st_mode))
        return "is a folder";
    if (!S_ISREG(status->st_mode))
        return "is no regular file";
    return status->st_size > (off_t)most ? "is too large" : NULL;
}

/* Reads the file. Refuses it if it has more than `most` bytes by now, because it may grow
 * meanwhile. Returns NULL, or the error. */
static const char *declared_file_read_all(int descriptor, size_t most, struct declared_file *file) {
    file->size = 0;
    file->text = malloc(most + 1);
    if (!file->text)
        return "cannot be read for want of memory";
    ssize_t got = 1;
    while (got > 0 && file->size <= most) {
        got = read(descriptor, file->text + file->size, most + 1 - file->size);
        file->size += got > 0 ? (size_t)got : 0;
    }
    const char *const problem = got < 0             ? file_problem_text(errno)
                                : file->size > most ? "is too large"
                                                    : NULL;
    if (problem) {
        free(file->text);
        file->text = NULL;
    }
    return problem;
}

const char *declared_file_take(int descriptor, size_t most, struct declared_file *file) {
    struct stat status;
    *file = (struct declared_file){NULL, 0};
    const char *problem = fstat(descriptor, &status) == 0 ? file_kind_problem(&status, most)
                                                          : file_problem_text(errno);
    if (!problem)
        problem = declared_file_read_all(descriptor, most, file);
    close(descriptor);
    return problem;
}

/* Checks the kind of the file before opening it, because opening a device may have effects; then
 * checks the opened file again. */
const char *declared_file_read(const char *path, size_t most, struct declared_file *file) {
    struct stat status;
    *file = (struct declared_file){NULL, 0};
    if (!may_open_by_path())
        return "cannot be read: the program has changed its root or its mounts";
    if (stat(path, &status) != 0)
        return file_problem_text(errno);
    const char *const problem = file_kind_problem(&status, most);
    if (problem)
        return problem;
    const int descriptor = open(path, OPEN_TO_READ);
    if (descriptor < 0)
        return file_problem_text(errno);
    return declared_file_take(descriptor, most, file);
}
