#include "log_file.h"

#include "private_file.h"
#include "working_directory.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

const char *log_file_absolute(const char *name, char *path, size_t size) {
    if (!name[0] || name[0] == '/')
        return name;
    if (!working_directory(path, size))
        return name;
    const size_t folder = path[1] ? strlen(path) : 0; /* "/" already ends in a slash */
    if (folder + 1 + strlen(name) >= size)
        return name;
    path[folder] = '/';
    memcpy(path + folder + 1, name, strlen(name) + 1);
    return path;
}

/* Returns whether faccessat() accepts the folder of `path`; errno is the reason if not. */
static bool folder_is(int mode, const char *path) {
    char folder[PATH_MAX];
    const char *const slash = strrchr(path, '/');
    const size_t size = slash ? (size_t)(slash - path) + 1 : 0;
    errno = ENAMETOOLONG;
    if (size == 0 || size >= sizeof folder)
        return false;
    memcpy(folder, path, size);
    folder[size] = 0;
    return syscall(SYS_faccessat, AT_FDCWD, folder, mode) == 0;
}

static bool folder_is_missing(const char *path) {
    return !folder_is(F_OK, path) && errno == ENOENT;
}

/* Returns true if the permissions alone, without the rule of private_file.h, may let the process
 * write the file. */
static bool might_be_written(const char *path) {
    return syscall(SYS_faccessat, AT_FDCWD, path, W_OK) == 0 || folder_is(W_OK, path);
}

const char *log_file_problem(const char *path) {
    const int file = private_file_open(path, O_WRONLY);
    if (file >= 0) {
        close(file);
        return NULL;
    }
    switch (-file) {
    case ELOOP:
    case EISDIR:
        return private_file_problem(file);
    case ENOENT:
        return folder_is_missing(path) ? "is in a folder that does not exist" : NULL;
    case ENOTDIR:
        return "is in something that is no folder";
    case ENAMETOOLONG:
        return "is too long a name";
    /* leaves out errors that are not reported: not for this user, read-only, or no descriptor
     * left */
    default:
        return might_be_written(path) ? private_file_problem(file) : NULL;
    }
}
