#include "listen_socket.h"

#include "clock.h"
#include "own_file.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

enum {
    KIND = SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK,
    WAITING = 64,        /* connections that are not accepted yet */
    PRIVATE_MODE = 0600, /* only the process's user may connect */
    OVERFLOW_ID = 65534, /* as own_file.c has it */
    SPARE = 5,           /* the socket's file, epoll's, one connection; two for the log */
    TRIES = 3,           /* while other processes take and leave the name */
    ASIDE_SIZE = 48,     /* ".otelprof-", a process id, nanoseconds */
    MOST_ENTRIES = 4096, /* of a folder, that are searched for sockets that were left */
    LEFT_SECONDS = 60    /* between bind(2) and listen(2), of a process that has not ended */
};
static const char aside_prefix[] = ".otelprof-";

/* --- a socket --- */

/* Who connects where no descriptor is left would wait for ever, and nothing could be said of it. */
static bool has_spare_descriptors(int descriptor) {
    int spare[SPARE];
    int count = 0;
    while (count < SPARE && (spare[count] = fcntl(descriptor, F_DUPFD_CLOEXEC, 0)) >= 0)
        count++;
    const bool all = count == SPARE;
    while (count > 0)
        close(spare[--count]);
    return all;
}

/* -errno: none. */
static int new_socket(struct listen_socket *opened, int family) {
    opened->descriptor = socket(family, KIND, 0);
    if (opened->descriptor < 0)
        return -errno;
    return has_spare_descriptors(opened->descriptor) ? 0 : -EMFILE;
}

/* --- a Unix socket --- */

/* By the folder's descriptor: whatever its path leads to by now, and however long that is. */
static bool name_in(struct sockaddr_un *address, int folder, const char *name) {
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    const int size = snprintf(address->sun_path, sizeof address->sun_path,
                              "/proc/thread-self/fd/%d/%s", folder, name);
    return size > 0 && (size_t)size < sizeof address->sun_path;
}

static bool is_answered(const struct sockaddr_un *address) {
    const int descriptor = socket(AF_UNIX, KIND, 0);
    if (descriptor < 0)
        return true; /* not known: it stays */
    const bool refused =
        connect(descriptor, (const struct sockaddr *)address, sizeof *address) != 0 &&
        errno == ECONNREFUSED;
    close(descriptor);
    return !refused;
}

/* Whether this process may have the name: nothing has it (*is_free), or a process of this user has
 * left a socket there and has ended. 0, or why not. */
static int check_name(int folder, const char *name, bool *is_free) {
    struct sockaddr_un address;
    struct stat status;
    if (!name_in(&address, folder, name))
        return -ENAMETOOLONG;
    *is_free = fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW) != 0;
    if (*is_free)
        return errno == ENOENT ? 0 : -errno;
    if (!S_ISSOCK(status.st_mode) || status.st_uid != (uid_t)syscall(SYS_geteuid))
        return -EEXIST;
    return is_answered(&address) ? -LISTEN_TAKEN : 0;
}

/* Binds it under a name that no other process uses. The mode of the descriptor's inode is that of
 * the file: the process's umask stays as it is. */
static int bind_aside(const struct listen_socket *opened, char *aside) {
    struct sockaddr_un address;
    if (fchmod(opened->descriptor, PRIVATE_MODE) != 0)
        return -errno;
    for (int i = 0; i < TRIES; i++) {
        snprintf(aside, ASIDE_SIZE, "%s%d-%llx", aside_prefix, (int)getpid(),
                 (unsigned long long)monotonic_nano());
        if (!name_in(&address, opened->folder, aside))
            return -ENAMETOOLONG;
        if (bind(opened->descriptor, (const struct sockaddr *)&address, sizeof address) == 0)
            return 0;
        if (errno != EADDRINUSE)
            break;
    }
    return -errno;
}

static bool rename_in(int folder, const char *from, const char *to, unsigned flags) {
    return syscall(SYS_renameat2, folder, from, folder, to, flags) == 0;
}

/* Gives it its name, in place of nothing or of what a process that has ended has left. What was
 * there is `aside` then. Between the check and the renaming another process may have taken the
 * name: it keeps it. */
static int take_name(const struct listen_socket *opened, const char *aside) {
    const int folder = opened->folder;
    const char *const name = opened->name;
    for (int i = 0; i < TRIES; i++) {
        bool is_free;
        bool is_gone;
        const int problem = check_name(folder, name, &is_free);
        if (problem)
            return problem;
        if (!rename_in(folder, aside, name, is_free ? RENAME_NOREPLACE : RENAME_EXCHANGE)) {
            if (errno == EEXIST || errno == ENOENT)
                continue;
            /* a file system without these flags: of two processes at this moment the later has it,
             * and the other one sees at its next export that it is lost */
            return errno == EINVAL && rename_in(folder, aside, name, 0) ? 0 : -errno;
        }
        const int mistake = is_free ? 0 : check_name(folder, aside, &is_gone);
        if (mistake)
            (void)rename_in(folder, aside, name, RENAME_EXCHANGE);
        return mistake;
    }
    return -LISTEN_TAKEN;
}

static int listen_as(struct listen_socket *opened, const char *aside) {
    opened->file = openat(opened->folder, aside, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (opened->file < 0 && errno == ENOENT)
        return -LISTEN_TAKEN; /* this process slept so long that the name was taken for a dead one's
                               */
    if (opened->file < 0 || fstat(opened->file, &opened->own) != 0 ||
        listen(opened->descriptor, WAITING) != 0)
        return -errno;
    return take_name(opened, aside);
}

/* --- what others have left --- */

/* A name of bind_aside(). */
static bool is_aside(const char *name) {
    const size_t prefix = sizeof aside_prefix - 1;
    if (strncmp(name, aside_prefix, prefix) != 0)
        return false;
    const size_t process = strspn(name + prefix, "0123456789");
    const char *const time = name + prefix + process + 1;
    return process > 0 && time[-1] == '-' && *time && time[strspn(time, "0123456789abcdef")] == 0;
}

/* Whether a process of this user has left it. One that a live process has made just now refuses
 * connections, too, until that process listens: it is younger. The process id in its name may be
 * that of another namespace. */
static bool is_left(const struct listen_socket *opened, const char *name) {
    struct sockaddr_un address;
    struct stat status;
    return is_aside(name) && name_in(&address, opened->folder, name) &&
           fstatat(opened->folder, name, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
           S_ISSOCK(status.st_mode) && status.st_uid == (uid_t)syscall(SYS_geteuid) &&
           status.st_mtim.tv_sec < opened->own.st_mtim.tv_sec - LEFT_SECONDS &&
           !is_answered(&address);
}

static void remove_left(const struct listen_socket *opened) {
    const int descriptor = openat(opened->folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *const entries = descriptor < 0 ? NULL : fdopendir(descriptor);
    const struct dirent *entry;
    if (!entries) {
        if (descriptor >= 0)
            close(descriptor);
        return;
    }
    for (int i = 0; i < MOST_ENTRIES && (entry = readdir(entries)); i++)
        if (is_left(opened, entry->d_name))
            (void)unlinkat(opened->folder, entry->d_name, 0);
    closedir(entries);
}

/* A connection to a socket that does not listen yet is refused, as it is where the process has
 * ended. So the socket listens before it has the name. */
static int bind_in(struct listen_socket *opened) {
    char aside[ASIDE_SIZE];
    bool is_free;
    int error = check_name(opened->folder, opened->name, &is_free);
    if (!error)
        error = bind_aside(opened, aside);
    if (error)
        return error;
    error = listen_as(opened, aside);
    (void)unlinkat(opened->folder, aside, 0);
    if (!error)
        remove_left(opened);
    return error;
}

static int open_unix(struct listen_socket *opened, const char *path) {
    const char *name;
    opened->folder = own_file_folder(path, &name);
    if (opened->folder < 0)
        return opened->folder;
    const size_t size = strlen(name) + 1;
    if (size == 1 || size > sizeof opened->name)
        return -ENAMETOOLONG;
    memcpy(opened->name, name, size);
    snprintf(opened->where, sizeof opened->where, "unix:%s", path);
    const int error = new_socket(opened, AF_UNIX);
    return error ? error : bind_in(opened);
}

/* --- a port --- */

static void name_port(struct listen_socket *opened, struct listen_address *address) {
    socklen_t size = sizeof address->inet;
    struct sockaddr_in v4; /* whose port is where version 6 has it */
    if (getsockname(opened->descriptor, (struct sockaddr *)&address->inet, &size) != 0)
        return;
    memcpy(&v4, &address->inet, sizeof v4);
    snprintf(opened->where, sizeof opened->where, "http://%s:%u",
             v4.sin_family == AF_INET6 ? "[::1]" : "127.0.0.1", (unsigned)ntohs(v4.sin_port));
}

static int open_port(struct listen_socket *opened, struct listen_address *address) {
    const int yes = 1;
    const int error = new_socket(opened, address->inet.ss_family);
    if (error)
        return error;
    (void)setsockopt(opened->descriptor, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (bind(opened->descriptor, (const struct sockaddr *)&address->inet, address->inet_size) !=
            0 ||
        listen(opened->descriptor, WAITING) != 0)
        return -errno;
    name_port(opened, address);
    return 0;
}

/* --- both --- */

int listen_socket_open(struct listen_socket *opened, struct listen_address *address) {
    *opened = (struct listen_socket){.descriptor = -1, .folder = -1, .file = -1};
    const int error =
        address->is_unix ? open_unix(opened, address->path) : open_port(opened, address);
    if (error)
        listen_socket_close(opened);
    return error;
}

const char *listen_socket_problem(int error) {
    const char *const own = own_file_problem(error);
    if (error == -LISTEN_TAKEN || error == -EADDRINUSE)
        return "another process answers there (it is tried again at each export)";
    if (error == -EEXIST)
        return "a file that is no socket of this user's is there";
    return own ? own : strerrordesc_np(-error);
}

static bool is_same_file(const struct stat *a, const struct stat *b) {
    return a->st_ino == b->st_ino && a->st_dev == b->st_dev;
}

static bool is_own_file(const struct listen_socket *opened) {
    struct stat status;
    return opened->own.st_ino != 0 &&
           fstatat(opened->folder, opened->name, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
           is_same_file(&status, &opened->own);
}

/* A process that has given up its rights may not be able to look. */
bool listen_socket_is_lost(const struct listen_socket *opened) {
    struct stat status;
    if (opened->folder < 0)
        return false;
    if (fstatat(opened->folder, opened->name, &status, AT_SYMLINK_NOFOLLOW) != 0)
        return errno == ENOENT;
    return !is_same_file(&status, &opened->own);
}

void listen_socket_close(struct listen_socket *opened) {
    if (opened->descriptor >= 0)
        close(opened->descriptor);
    if (opened->file >= 0)
        close(opened->file);
    if (opened->folder >= 0) {
        if (is_own_file(opened))
            unlinkat(opened->folder, opened->name, 0);
        close(opened->folder);
    }
    listen_socket_forget(opened);
}

void listen_socket_forget(struct listen_socket *opened) {
    opened->descriptor = -1;
    opened->folder = -1;
    opened->file = -1;
    opened->own = (struct stat){.st_ino = 0};
}

bool listen_socket_peer_is_trusted(int connection) {
    struct ucred peer;
    socklen_t size = sizeof peer;
    if (getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0)
        return false;
    if (peer.uid == OVERFLOW_ID && own_file_user_is_anybody())
        return false;
    return peer.uid == 0 || peer.uid == (uid_t)syscall(SYS_geteuid);
}
