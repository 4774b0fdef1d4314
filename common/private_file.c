#include "private_file.h"

#include "open_flags.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

enum {
    HOW = OPEN_SAFELY | O_NOFOLLOW,
    /* number of tries: other processes of the same user may create the file at the same moment */
    TRIES = 3,
    /* Linux's DEFAULT_OVERFLOWUID, which the kernel shows for users that a namespace does not
     * know */
    OVERFLOW_ID = 65534
};

/* --- the folders --- */

/* Returns true in the initial user namespace, which knows every user: its map is one line that
 * covers all users. Returns true, too, if the map cannot be read. */
static bool knows_every_user(void) {
    char map[64];
    const int file = open("/proc/self/uid_map", OPEN_TO_READ);
    const ssize_t size = file < 0 ? -1 : read(file, map, sizeof map - 1);
    if (file >= 0)
        close(file);
    map[size < 0 ? 0 : size] = 0;
    return size < 0 || strstr(map, " 4294967295\n");
}

bool private_file_user_is_unknown(void) {
    return !knows_every_user();
}

static bool is_trusted(uid_t user) {
    return user == 0 || user == (uid_t)syscall(SYS_geteuid) ||
           (user == OVERFLOW_ID && !knows_every_user());
}

static bool others_may_write(const struct stat *folder) {
    const bool group = folder->st_gid != 0 && folder->st_gid != (gid_t)syscall(SYS_getegid);
    return folder->st_mode & (group ? S_IWGRP | S_IWOTH : S_IWOTH);
}

static int private_folder_fault(int folder) {
    struct stat status;
    if (syscall(SYS_fstat, folder, &status) != 0)
        return -errno;
    if (!is_trusted(status.st_uid))
        return -PRIVATE_FILE_IN_FOLDER_OF_ANOTHER;
    if (others_may_write(&status) && !(status.st_mode & S_ISVTX))
        return -PRIVATE_FILE_IN_OPEN_FOLDER;
    return 0;
}

static int kind_of(int folder, const char *name, struct stat *status) {
    return syscall(SYS_newfstatat, folder, name, status, AT_SYMLINK_NOFOLLOW) == 0 ? 0 : -errno;
}

static int open_folder(int parent, const char *name) {
    struct stat status;
    const int folder =
        (int)syscall(SYS_openat, parent, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    const int error = folder < 0 ? -errno : private_folder_fault(folder);
    if (error == 0)
        return folder;
    if (folder >= 0)
        close(folder);
    if (error == -ENOTDIR && kind_of(parent, name, &status) == 0 && S_ISLNK(status.st_mode))
        return -PRIVATE_FILE_BEHIND_LINK;
    return error;
}

static int open_folder_below(int parent, const char *name, size_t size) {
    char part[NAME_MAX + 1];
    int folder = -ENAMETOOLONG;
    if (size < sizeof part) {
        memcpy(part, name, size);
        part[size] = 0;
        folder = open_folder(parent, part);
    }
    close(parent);
    return folder;
}

int private_file_folder(const char *path, const char **name) {
    int folder = open_folder(AT_FDCWD, path[0] == '/' ? "/" : ".");
    path += strspn(path, "/");
    while (folder >= 0 && strchr(path, '/')) {
        const size_t size = strcspn(path, "/");
        folder = open_folder_below(folder, path, size);
        path += size;
        path += strspn(path, "/");
    }
    *name = path;
    return folder;
}

/* --- the file --- */

static bool is_null_device(const struct stat *status) {
    return S_ISCHR(status->st_mode) && status->st_rdev == makedev(1, 3);
}

static int private_file_fault(const struct stat *status) {
    if (is_null_device(status))
        return 0;
    if (!S_ISREG(status->st_mode))
        return -ENOTSUP;
    if (status->st_uid != (uid_t)syscall(SYS_geteuid))
        return -PRIVATE_FILE_OF_ANOTHER;
    if (status->st_uid == OVERFLOW_ID && !knows_every_user())
        return -EACCES; /* refuses the file, because it may belong to any user */
    return status->st_nlink > 1 ? -PRIVATE_FILE_LINKED : 0;
}

/* Returns 0 if the file is of a kind that may be opened, or -errno. The caller opens the file only
 * afterwards, because opening a device or a pipe may have an effect. */
static int kind_problem(int folder, const char *name) {
    struct stat status;
    const int error = kind_of(folder, name, &status);
    if (error)
        return error;
    if (S_ISLNK(status.st_mode))
        return -ELOOP;
    if (S_ISDIR(status.st_mode))
        return -EISDIR;
    return S_ISREG(status.st_mode) || is_null_device(&status) ? 0 : -ENOTSUP;
}

static int open_existing(int folder, const char *name, int access) {
    struct stat status;
    int error = kind_problem(folder, name);
    if (error)
        return error;
    const int file = (int)syscall(SYS_openat, folder, name, (access & ~O_CREAT) | HOW);
    if (file < 0)
        return -errno;
    error = syscall(SYS_fstat, file, &status) == 0 ? private_file_fault(&status) : -errno;
    if (error == 0)
        return file;
    close(file);
    return error;
}

static int private_file_create(int folder, const char *name, int access) {
    const int file = (int)syscall(SYS_openat, folder, name, access | O_EXCL | HOW, 0600);
    return file < 0 ? -errno : file;
}

static int open_in(int folder, const char *name, int access) {
    int file = -EISDIR;
    for (int i = 0; i < TRIES && *name; i++) {
        file = open_existing(folder, name, access);
        if (file != -ENOENT || !(access & O_CREAT))
            return file;
        file = private_file_create(folder, name, access);
        if (file != -EEXIST)
            return file;
    }
    return file;
}

int private_file_open(const char *path, int access) {
    const char *name;
    const int folder = private_file_folder(path, &name);
    if (folder < 0)
        return folder;
    const int file = open_in(folder, name, access | O_APPEND);
    close(folder);
    return file;
}

int private_file_open_in(const char *folder, const char *name, int access) {
    const int place = open_folder(AT_FDCWD, folder);
    if (place < 0)
        return place;
    const int file = open_in(place, name, access);
    close(place);
    return file;
}

const char *private_file_problem(int error) {
    switch (-error) {
    case ELOOP:
        return "is a symbolic link, which is not followed";
    case EISDIR:
        return "is a folder";
    case ENOTSUP:
        return "is no regular file";
    case PRIVATE_FILE_BEHIND_LINK:
        return "is behind a symbolic link, which is not followed";
    case PRIVATE_FILE_OF_ANOTHER:
        return "belongs to another user";
    case PRIVATE_FILE_IN_FOLDER_OF_ANOTHER:
        return "is in a folder of another user";
    case PRIVATE_FILE_IN_OPEN_FOLDER:
        return "is in a folder that others can write";
    case PRIVATE_FILE_LINKED:
        return "has a second name (a hard link)";
    default:
        return NULL;
    }
}
