#include "listen_socket.h"

#include "clock.h"
#include "private_file.h"

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
    WAITING = 64,        /* backlog: connections that are not yet accepted */
    PRIVATE_MODE = 0600, /* only the process's user may connect */
    ALL_MODES = 07777,
    OVERFLOW_ID = 65534, /* the overflow uid, as in common/private_file.c */
    /* descriptors that must stay free: the socket's file, epoll's, one connection, and two for the
     * log */
    SPARE = 5,
    TRIES = 3,           /* attempts while other processes take and release the name */
    ASIDE_SIZE = 48,     /* size of the temporary name: ".otelprof-", a process id, nanoseconds */
    MOST_ENTRIES = 4096, /* directory entries that are searched for stale sockets */
    STALE_SECONDS = 60   /* longest time between bind(2) and listen(2) of a live process */
};
static const char aside_prefix[] = ".otelprof-";

/* --- Unix sockets and ports --- */

/* Returns true if SPARE descriptors are free. Without a free descriptor no connection can be
 * accepted: clients would wait for ever, and the log could not report it. */
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

/* Makes a socket. Returns 0 or -errno. */
static int new_socket(struct listen_socket *opened, int family) {
    opened->descriptor = socket(family, KIND, 0);
    if (opened->descriptor < 0)
        return -errno;
    return has_spare_descriptors(opened->descriptor) ? 0 : -EMFILE;
}

/* --- Unix sockets --- */

/* Names the file by the folder's descriptor, which stays valid if the folder's path changes, and
 * which fits sun_path however long that path is. Returns false if `name` itself is too long. */
static bool set_socket_name(struct sockaddr_un *address, int folder, const char *name) {
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    const int size = snprintf(address->sun_path, sizeof address->sun_path,
                              "/proc/thread-self/fd/%d/%s", folder, name);
    return size > 0 && (size_t)size < sizeof address->sun_path;
}

static bool is_listening(const struct sockaddr_un *address) {
    const int descriptor = socket(AF_UNIX, KIND, 0);
    if (descriptor < 0)
        return true; /* it may be alive, so it is not replaced */
    const bool refused =
        connect(descriptor, (const struct sockaddr *)address, sizeof *address) != 0 &&
        errno == ECONNREFUSED;
    close(descriptor);
    return !refused;
}

/* Returns 0 if this process may take the name: either no file has it (*is_free), or it is a stale
 * socket of this user. Otherwise returns a negative error. */
static int check_name(int folder, const char *name, bool *is_free) {
    struct sockaddr_un address;
    struct stat status;
    if (!set_socket_name(&address, folder, name))
        return -ENAMETOOLONG;
    *is_free = fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW) != 0;
    if (*is_free)
        return errno == ENOENT ? 0 : -errno;
    if (!S_ISSOCK(status.st_mode) || status.st_uid != (uid_t)syscall(SYS_geteuid))
        return -EEXIST;
    return is_listening(&address) ? -LISTEN_TAKEN : 0;
}

static void aside_name(char aside[static ASIDE_SIZE]) {
    snprintf(aside, ASIDE_SIZE, "%s%d-%llx", aside_prefix, (int)getpid(),
             (unsigned long long)monotonic_nano());
}

/* Binds the socket to a name that no other process uses. Sets the file's mode by fchmod(2) of the
 * unbound socket (on Linux bind(2) uses that mode), so that the process's umask stays unchanged. */
static int bind_aside(const struct listen_socket *opened, char *aside) {
    struct sockaddr_un address;
    if (fchmod(opened->descriptor, PRIVATE_MODE) != 0)
        return -errno;
    for (int i = 0; i < TRIES; i++) {
        aside_name(aside);
        if (!set_socket_name(&address, opened->folder, aside))
            return -ENAMETOOLONG;
        if (bind(opened->descriptor, (const struct sockaddr *)&address, sizeof address) == 0)
            return 0;
        if (errno != EADDRINUSE)
            break;
    }
    const bool has_none = errno == EPERM || errno == EOPNOTSUPP || errno == ENOSYS;
    return has_none ? -LISTEN_NO_SOCKETS : -errno;
}

static bool rename_in(int folder, const char *from, const char *to, unsigned flags) {
    return syscall(SYS_renameat2, folder, from, folder, to, flags) == 0;
}

/* Renames `aside` to the final name. If there is a stale socket, the two names are exchanged. If
 * another process has taken the name since the check, the two names are exchanged back. */
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
            /* The file system has no flags of renameat2(2). If two processes rename at the same
             * time, the later one gets the name, and the other one finds at its next export that
             * its file is lost. */
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
        /* this process was so slow that another process has removed the file as stale */
        return -LISTEN_TAKEN;
    if (opened->file < 0 || fstat(opened->file, &opened->identity) != 0 ||
        listen(opened->descriptor, WAITING) != 0)
        return -errno;
    return take_name(opened, aside);
}

/* --- stale sockets of other processes --- */

/* Returns true for a name that bind_aside() makes. */
static bool is_aside(const char *name) {
    const size_t prefix = sizeof aside_prefix - 1;
    if (strncmp(name, aside_prefix, prefix) != 0)
        return false;
    const size_t process = strspn(name + prefix, "0123456789");
    const char *const time = name + prefix + process + 1;
    return process > 0 && time[-1] == '-' && *time && time[strspn(time, "0123456789abcdef")] == 0;
}

/* Returns true if a process of this user has left the socket behind. A socket that a live process
 * has just bound also refuses connections until listen(2); its age shows the difference. The
 * process id in the name does not, because it may be of another namespace. */
static bool is_stale(const struct listen_socket *opened, const char *name, struct stat *status) {
    struct sockaddr_un address;
    return set_socket_name(&address, opened->folder, name) &&
           fstatat(opened->folder, name, status, AT_SYMLINK_NOFOLLOW) == 0 &&
           S_ISSOCK(status->st_mode) && status->st_uid == (uid_t)syscall(SYS_geteuid) &&
           status->st_mtim.tv_sec < opened->identity.st_mtim.tv_sec - STALE_SECONDS &&
           !is_listening(&address);
}

/* Returns true for the name that listeners have in a folder of theirs: PID.sock. */
static bool is_listeners(const char *name) {
    const size_t process = strspn(name, "0123456789");
    return process > 0 && strcmp(name + process, ".sock") == 0;
}

/* Returns true if the process exists whose id is in the socket's name. This check comes first,
 * because an attempt to connect would wake the listener. A process of another namespace is not
 * found. */
static bool is_of_process(const char *name) {
    char path[ASIDE_SIZE];
    struct stat status;
    snprintf(path, sizeof path, "/proc/%.*s", (int)strspn(name, "0123456789"), name);
    return fstatat(AT_FDCWD, path, &status, AT_SYMLINK_NOFOLLOW) == 0;
}

static bool is_in_folder_of_listeners(const struct listen_socket *opened) {
    char own[ASIDE_SIZE];
    snprintf(own, sizeof own, "%d.sock", (int)getpid());
    return strcmp(opened->name, own) == 0;
}

static bool is_same_file(const struct stat *a, const struct stat *b) {
    return a->st_ino == b->st_ino && a->st_dev == b->st_dev;
}

/* Removes the listener's socket if it is stale. Gives the file a name of this process first: if a
 * new listener of that process id has taken the name since the check, the file gets its name back.
 * `held`: the status of the file that the caller has open by that name; no new file can get its
 * inode number meanwhile. */
static void remove_listeners(const struct listen_socket *opened, const char *name,
                             const struct stat *held) {
    char aside[ASIDE_SIZE];
    struct stat status;
    aside_name(aside);
    if (!is_stale(opened, name, &status) || !is_same_file(&status, held) ||
        (status.st_mode & ALL_MODES) != PRIVATE_MODE)
        return;
    /* a file system without flags of renameat2(2) keeps the file */
    if (!rename_in(opened->folder, name, aside, RENAME_NOREPLACE))
        return;
    if (fstatat(opened->folder, aside, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
        is_same_file(&status, held))
        (void)unlinkat(opened->folder, aside, 0);
    else
        (void)rename_in(opened->folder, aside, name, RENAME_NOREPLACE);
}

static void remove_if_stale(const struct listen_socket *opened, const char *name, bool listeners) {
    struct stat status;
    if (is_aside(name) && is_stale(opened, name, &status))
        (void)unlinkat(opened->folder, name, 0);
    if (!listeners || !is_listeners(name) || is_of_process(name))
        return;
    const int file = openat(opened->folder, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (file < 0)
        return;
    if (fstat(file, &status) == 0)
        remove_listeners(opened, name, &status);
    close(file);
}

static void remove_stale(const struct listen_socket *opened) {
    const bool listeners = is_in_folder_of_listeners(opened);
    const int descriptor = openat(opened->folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *const entries = descriptor < 0 ? NULL : fdopendir(descriptor);
    const struct dirent *entry;
    if (!entries) {
        if (descriptor >= 0)
            close(descriptor);
        return;
    }
    for (int i = 0; i < MOST_ENTRIES && (entry = readdir(entries)); i++)
        remove_if_stale(opened, entry->d_name, listeners);
    closedir(entries);
}

/* Binds the socket, which listens before it gets its final name, because a bound socket that does
 * not listen refuses connections, as a stale socket does. */
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
        remove_stale(opened);
    return error;
}

static int open_unix(struct listen_socket *opened, const char *path) {
    const char *name;
    opened->folder = private_file_folder(path, &name);
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

/* --- ports --- */

static void name_port(struct listen_socket *opened, struct listen_address *address) {
    socklen_t size = sizeof address->inet;
    struct sockaddr_in v4; /* sockaddr_in6 has its port at the same offset */
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

/* --- the interface --- */

int listen_socket_open(struct listen_socket *opened, struct listen_address *address) {
    *opened = (struct listen_socket){.descriptor = -1, .folder = -1, .file = -1};
    const int error =
        address->is_unix ? open_unix(opened, address->path) : open_port(opened, address);
    if (error)
        listen_socket_close(opened);
    return error;
}

const char *listen_socket_problem(int error) {
    const char *const identity = private_file_problem(error);
    if (error == -LISTEN_TAKEN || error == -EADDRINUSE)
        return "another process listens there (each export tries again)";
    if (error == -LISTEN_NO_SOCKETS)
        return "the folder is immutable, or its file system has no sockets: name another folder, "
               "such as one of /run";
    if (error == -EEXIST)
        return "a file that is no socket of this user's is there";
    return identity ? identity : strerrordesc_np(-error);
}

/* Reports an error other than ENOENT as "not lost": a process that has dropped its privileges may
 * be unable to read the folder. */
bool listen_socket_is_lost(const struct listen_socket *opened) {
    struct stat status;
    if (opened->folder < 0)
        return false;
    if (fstatat(opened->folder, opened->name, &status, AT_SYMLINK_NOFOLLOW) != 0)
        return errno == ENOENT;
    return !is_same_file(&status, &opened->identity);
}

void listen_socket_close(struct listen_socket *opened) {
    struct stat status;
    if (opened->descriptor >= 0)
        close(opened->descriptor);
    if (opened->file >= 0)
        close(opened->file);
    if (opened->folder >= 0) {
        if (opened->identity.st_ino != 0 &&
            fstatat(opened->folder, opened->name, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
            is_same_file(&status, &opened->identity))
            unlinkat(opened->folder, opened->name, 0);
        close(opened->folder);
    }
    listen_socket_forget(opened);
}

void listen_socket_forget(struct listen_socket *opened) {
    opened->descriptor = -1;
    opened->folder = -1;
    opened->file = -1;
    opened->identity = (struct stat){.st_ino = 0};
}

bool listen_socket_peer_is_trusted(int connection) {
    struct ucred peer;
    socklen_t size = sizeof peer;
    if (getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0)
        return false;
    if (peer.uid == OVERFLOW_ID && private_file_user_is_unknown())
        return false;
    return peer.uid == 0 || peer.uid == (uid_t)syscall(SYS_geteuid);
}
