#include "log_file.h"

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
    const size_t folder = path[1] ? strlen(path) : 0; /* "/" has its slash already */
    if (folder + 1 + strlen(name) >= size)
        return name;
    path[folder] = '/';
    memcpy(path + folder + 1, name, strlen(name) + 1);
    return path;
}

static bool folder_is_missing(const char *path) {
    char folder[PATH_MAX];
    const char *const slash = strrchr(path, '/');
    const size_t size = slash ? (size_t)(slash - path) + 1 : 0;
    if (size == 0 || size >= sizeof folder)
        return false;
    memcpy(folder, path, size);
    folder[size] = 0;
    return syscall(SYS_faccessat, AT_FDCWD, folder, F_OK) != 0 && errno == ENOENT;
}

const char *log_file_problem(const char *path) {
    const int file = open(path, LOG_FILE_FLAGS);
    if (file >= 0) {
        close(file);
        return NULL;
    }
    switch (errno) {
    case ELOOP:
        return "is a symbolic link, which is not followed";
    case EISDIR:
        return "is a folder";
    case ENOENT:
        return folder_is_missing(path) ? "is in a folder that does not exist" : NULL;
    case ENOTDIR:
        return "is in something that is no folder";
    case ENAMETOOLONG:
        return "is too long a name";
    default: /* not for this user, read-only, a pipe that nobody reads yet, no descriptor left */
        return NULL;
    }
}
