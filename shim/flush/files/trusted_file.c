#include "trusted_file.h"

#include "by_path.h"
#include "open_flags.h"
#include "process_maps.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

enum {
    MAX_LINKS = 40,       /* the kernel's limit: MAXSYMLINKS */
    MAX_COMPONENTS = 256, /* components of the path and of the targets of its links, together */
    PAGE_BYTES = 4096,
};

static const int part_flags = O_PATH | O_NOFOLLOW | O_CLOEXEC;
static const int read_flags = OPEN_TO_READ | O_NOFOLLOW;

/* Walks from the root to the file, part by part. */
struct walk {
    int folder; /* O_PATH descriptor; -1: the walk has failed */
    char path[2 * PATH_MAX];
    size_t at; /* where the rest of `path` begins */
    unsigned links;
    /* set by trusted_file_open_given(): the root of a read-only mount is trusted */
    bool mounts_vouch;
};

/* --- users with write access --- */

static bool is_trusted_user(uid_t user) {
    return user == 0 || user == geteuid() || user == getuid();
}

static bool status_is_trusted(const struct stat *status) {
    if (!is_trusted_user(status->st_uid))
        return false;
    /* ignores the mode of a link, which has no meaning, because a link cannot be written */
    if (S_ISLNK(status->st_mode))
        return true;
    const bool sticky = S_ISDIR(status->st_mode) && (status->st_mode & S_ISVTX);
    const bool others_can_write =
        (status->st_mode & S_IWOTH) || ((status->st_mode & S_IWGRP) && status->st_gid != 0);
    return sticky || !others_can_write;
}

/* Returns true for the root of a read-only mount: its mode may let all users write, but root has
 * mounted it and vouches for its contents. Kernels before 5.8 do not report mount roots: then no
 * such folder is trusted. */
static bool is_vouched_mount(int folder) {
    struct statvfs system;
    struct statx status;
    return statx(folder, "", AT_EMPTY_PATH, STATX_UID, &status) == 0 && status.stx_uid == 0 &&
           (status.stx_attributes & STATX_ATTR_MOUNT_ROOT) && fstatvfs(folder, &system) == 0 &&
           (system.f_flag & ST_RDONLY);
}

static bool is_trusted_part(const struct walk *walk, int part, const struct stat *status) {
    return status_is_trusted(status) ||
           (walk->mounts_vouch && S_ISDIR(status->st_mode) && is_vouched_mount(part));
}

/* --- walking --- */

/* Takes ownership of `folder`. Returns true if the walk continues in it. */
static bool trusted_file_enter(struct walk *walk, int folder) {
    struct stat status;
    if (walk->folder >= 0)
        close(walk->folder);
    walk->folder = folder;
    return folder >= 0 && fstat(folder, &status) == 0 && S_ISDIR(status.st_mode) &&
           is_trusted_part(walk, folder, &status);
}

static bool enter_root(struct walk *walk) {
    return may_open_by_path() &&
           trusted_file_enter(walk, open("/", O_PATH | O_DIRECTORY | O_CLOEXEC));
}

/* Takes the first part of the rest. Returns false if nothing is left, or the part is too long. */
static bool next_part(struct walk *walk, char part[NAME_MAX + 1]) {
    const char *const left = walk->path + walk->at;
    const char *const start = left + strspn(left, "/");
    const size_t length = strcspn(start, "/");
    if (length == 0 || length > NAME_MAX)
        return false;
    memcpy(part, start, length);
    part[length] = 0;
    walk->at = (size_t)(start + length - walk->path);
    return true;
}

static bool is_last(const struct walk *walk) {
    const char *const left = walk->path + walk->at;
    return left[strspn(left, "/")] == 0;
}

/* Puts the link's target before the rest of the path. */
static bool trusted_file_follow(struct walk *walk, int link) {
    char path[sizeof walk->path];
    const ssize_t length = readlinkat(link, "", path, PATH_MAX - 1);
    const size_t left = strlen(walk->path + walk->at);
    if (length <= 0 || ++walk->links > MAX_LINKS || (size_t)length + 1 + left >= sizeof path)
        return false;
    path[length] = '/';
    memcpy(path + length + 1, walk->path + walk->at, left + 1);
    memcpy(walk->path, path, (size_t)length + 1 + left + 1);
    walk->at = 0;
    return path[0] != '/' || enter_root(walk);
}

/* Opens the file for reading only after its check, because opening a device may have effects.
 * Returns -1 if the name now refers to another file. */
static int open_checked(const struct walk *walk, const char *name, const struct stat *checked) {
    struct stat status;
    const int file = openat(walk->folder, name, read_flags);
    if (file >= 0 && fstat(file, &status) == 0 && status.st_dev == checked->st_dev &&
        status.st_ino == checked->st_ino)
        return file;
    if (file >= 0)
        close(file);
    return -1;
}

enum trusted_file_step { STEP_ON, STEP_FILE, STEP_FAILED };

static enum trusted_file_step trusted_file_step(struct walk *walk, const char *name, int *file) {
    struct stat status;
    const int part = openat(walk->folder, name, part_flags);
    if (part < 0)
        return STEP_FAILED;
    bool on = false;
    if (fstat(part, &status) != 0 || !is_trusted_part(walk, part, &status)) {
        close(part);
        return STEP_FAILED;
    }
    if (S_ISDIR(status.st_mode) && !is_last(walk))
        return trusted_file_enter(walk, part) ? STEP_ON : STEP_FAILED;
    if (S_ISLNK(status.st_mode))
        on = trusted_file_follow(walk, part);
    else if (S_ISREG(status.st_mode) && is_last(walk))
        *file = open_checked(walk, name, &status);
    close(part);
    return on ? STEP_ON : *file >= 0 ? STEP_FILE : STEP_FAILED;
}

static int open_walking(const char *path, bool mounts_vouch) {
    struct walk walk = {.folder = -1, .mounts_vouch = mounts_vouch};
    char name[NAME_MAX + 1];
    int file = -1;
    if (path[0] != '/' || strlen(path) >= PATH_MAX)
        return -1;
    memcpy(walk.path, path, strlen(path) + 1);
    enum trusted_file_step taken = enter_root(&walk) ? STEP_ON : STEP_FAILED;
    for (int i = 0; i < MAX_COMPONENTS && taken == STEP_ON; i++)
        taken = next_part(&walk, name) ? trusted_file_step(&walk, name, &file) : STEP_FAILED;
    if (walk.folder >= 0)
        close(walk.folder);
    return file;
}

int trusted_file_open(const char *path) {
    return open_walking(path, false);
}

int trusted_file_open_given(const char *path) {
    return open_walking(path, true);
}

/* --- the mapped file --- */

/* Identifies a file as a line of maps does. */
struct identity {
    unsigned major;
    unsigned minor;
    uint64_t inode; /* inode number; 0: no file is mapped there */
};

/* Holds two addresses, and which file is mapped at each. */
struct mapped_pair {
    uint64_t addresses[2];
    struct identity found[2];
};

static bool find_files(void *arg, const struct process_mapping *mapping) {
    struct mapped_pair *const pair = arg;
    struct identity here;
    /* NOLINTNEXTLINE(bugprone-unchecked-string-to-number-conversion,cert-err34-c): the kernel's
     * text */
    if (sscanf(mapping->rest, " %*s %*x %x:%x %" SCNu64, &here.major, &here.minor, &here.inode) !=
        3)
        return false;
    for (int i = 0; i < 2; i++)
        if (pair->addresses[i] >= mapping->start && pair->addresses[i] < mapping->end)
            pair->found[i] = here;
    return false;
}

static bool same_mapping(uint64_t address, uint64_t other) {
    struct mapped_pair pair = {.addresses = {address, other}};
    const struct identity *const found = pair.found;
    if (may_open_by_path())
        (void)process_maps_visit(find_files, &pair);
    return found[0].inode && found[0].inode == found[1].inode && found[0].major == found[1].major &&
           found[0].minor == found[1].minor;
}

/* Returns true if the file is mapped at that address of this process; false if another file is, or
 * if there is no /proc.
 *
 * The list of mappings has the device and inode of each mapping. On overlayfs and btrfs they differ
 * from fstat()'s for the same file. So one page of the file is mapped for a moment, without any
 * access, and the two lines of the list are compared, like with like. */
static bool mapped_file_is_at(int file, uint64_t address) {
    void *const page = mmap(NULL, PAGE_BYTES, PROT_NONE, MAP_PRIVATE, file, 0);
    if (page == MAP_FAILED)
        return false;
    const bool same = same_mapping(address, (uintptr_t)page);
    munmap(page, PAGE_BYTES);
    return same;
}

/* Opens the file of an O_PATH descriptor for reading; -1 if it is no regular file. Opens it by the
 * descriptor, because the path might lead to a device a moment later. */
static int open_part(int part) {
    char path[64];
    struct stat status;
    if (fstat(part, &status) != 0 || !S_ISREG(status.st_mode))
        return -1;
    snprintf(path, sizeof path, "/proc/thread-self/fd/%d", part);
    return open(path, read_flags & ~O_NOFOLLOW);
}

int trusted_file_open_mapped(const char *path, uint64_t address) {
    const bool may = path[0] == '/' && may_open_by_path();
    const int part = may ? open(path, O_PATH | O_CLOEXEC) : -1;
    if (part < 0)
        return -1;
    const int file = open_part(part);
    close(part);
    if (file < 0 || mapped_file_is_at(file, address))
        return file;
    close(file);
    return -1;
}

bool trusted_file_is_own(const struct stat *status) {
    return S_ISREG(status->st_mode) && is_trusted_user(status->st_uid) && status->st_nlink == 1 &&
           !(status->st_mode & S_IWOTH);
}
