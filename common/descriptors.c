#include "descriptors.h"

#include "open_flags.h"
#include "process_file.h"
#include "seccomp_state.h"
#include "text_numbers.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/close_range.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

enum { PATH_BYTES = 32, INFO_BYTES = 512, MARKER_FLAGS = 3 /* MFD_CLOEXEC, MFD_ALLOW_SEALING */ };

/* --- behind a seccomp filter ---
 *
 * Behind a filter the helper cannot borrow a descriptor from the program's table, and cannot open a
 * socket, or a file with a position, again. So it keeps stderr open if that is a regular file or
 * the journal's socket. It keeps no pipe and no other socket, whose reader would wait for the
 * end. */

static bool is_journal(int number) {
    static const char path[] = "/run/systemd/journal/stdout"; /* sd-journal(3) */
    struct sockaddr_un peer = {.sun_family = AF_UNSPEC};
    socklen_t size = sizeof peer - 1;
    return syscall(SYS_getpeername, number, &peer, &size) == 0 && peer.sun_family == AF_UNIX &&
           strcmp(peer.sun_path, path) == 0;
}

static bool may_be_kept(int number) {
    struct stat status;
    return syscall(SYS_fstat, number, &status) == 0 &&
           (S_ISREG(status.st_mode) || (S_ISSOCK(status.st_mode) && is_journal(number)));
}

/* Duplicates the kept descriptor, if the process's descriptor `number`, which `path` names, is
 * still the same file. Returns the duplicate, or -errno (-EBADF: it is another file). */
static int duplicate_kept(int number, const char *path) {
    struct stat kept;
    struct stat present;
    if (syscall(SYS_fstat, number, &kept) != 0 ||
        syscall(SYS_newfstatat, AT_FDCWD, path, &present, 0) != 0)
        return -errno;
    if (kept.st_dev != present.st_dev || kept.st_ino != present.st_ino)
        return -EBADF;
    const int file = (int)syscall(SYS_fcntl, number, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    return file < 0 ? -errno : file;
}

/* --- the helper's own table --- */

/* Marks the table by an empty file, which uses no memory. If the kernel refuses the file, the epoll
 * descriptor in the place of stdin marks the table, because programs rarely have an epoll
 * descriptor there. */
static void mark_table(struct descriptor_table *table) {
    const int file = (int)syscall(SYS_memfd_create, "libotelprof", MARKER_FLAGS);
    table->marker = file < 0 ? STDIN_FILENO : file;
    table->marked = file_identity_of(table->marker);
}

bool descriptors_separate(struct descriptor_table *table) {
    *table = (struct descriptor_table){.marker = -1};
    const bool keeps = seccomp_is_filtered() && may_be_kept(STDERR_FILENO);
    const unsigned last = keeps ? STDERR_FILENO - 1 : UINT_MAX;
    if (syscall(SYS_close_range, 0, last, CLOSE_RANGE_UNSHARE) != 0)
        return false;
    if (keeps)
        (void)syscall(SYS_close_range, STDERR_FILENO + 1, UINT_MAX, 0);
    for (int i = 0; i <= (keeps ? STDERR_FILENO - 1 : STDERR_FILENO); i++)
        /* an epoll descriptor can be made in any root; reading it and writing to it fail */
        (void)syscall(SYS_epoll_create1, 0);
    mark_table(table);
    return true;
}

bool descriptors_are_own(const struct descriptor_table *table) {
    return !table->marked.known || file_identity_is(&table->marked, table->marker);
}

/* --- borrowing --- */

static int duplicate_from_process(int number) {
    const int process = (int)syscall(SYS_pidfd_open, getpid(), 0);
    if (process < 0)
        return -errno;
    const int borrowed = (int)syscall(SYS_pidfd_getfd, process, number, 0);
    const int error = errno;
    close(process);
    return borrowed < 0 ? -error : borrowed;
}

/* Writes the path by the process's main thread, which is /proc/self. `number` has one digit. */
static void descriptor_path(char path[static PATH_BYTES], const char *folder, int number) {
    char *const end = stpcpy(stpcpy(path, "/proc/self/"), folder);
    end[0] = '/';
    end[1] = (char)('0' + number);
    end[2] = 0;
}

static bool appends(int number) {
    char path[PATH_BYTES];
    char text[INFO_BYTES];
    uint64_t flags;
    descriptor_path(path, "fdinfo", number);
    const char *const value = process_file_text(process_file_open_path(path), text, sizeof text)
                                  ? process_text_value(text, "flags:", '\t')
                                  : NULL;
    return value && number_read(value, 8, &flags) && (flags & O_APPEND);
}

/* Returns false for a regular file unless the program appends every line: a file that is opened
 * again has another position, and the program's next line would overwrite the profiler's. */
static bool has_one_position(int file, int number) {
    struct stat status;
    return syscall(SYS_fstat, file, &status) == 0 && (!S_ISREG(status.st_mode) || appends(number));
}

static int set_blocking(int file) {
    const long flags = syscall(SYS_fcntl, file, F_GETFL, 0);
    return flags < 0 || syscall(SYS_fcntl, file, F_SETFL, flags & ~O_NONBLOCK) != 0 ? -errno : file;
}

/* Opens the same file by its name in /proc, by which a socket cannot be opened. Does not wait for
 * the reader of a pipe. Returns the descriptor, or -errno (-EPERM: the file has a position). */
static int open_again(int number) {
    char path[PATH_BYTES];
    descriptor_path(path, "fd", number);
    const int file = open(path, O_WRONLY | O_APPEND | OPEN_SAFELY);
    if (file < 0)
        return -errno;
    const int result = has_one_position(file, number) ? set_blocking(file) : -EPERM;
    if (result < 0)
        close(file);
    return result;
}

static int borrow_kept(int number) {
    char path[PATH_BYTES];
    descriptor_path(path, "fd", number);
    return duplicate_kept(number, path);
}

int descriptors_borrow(int number) {
    /* avoids pidfd_getfd, because a filter may kill the process for it */
    if (seccomp_is_filtered())
        return may_be_kept(number) ? borrow_kept(number) : open_again(number);
    const int borrowed = duplicate_from_process(number);
    return borrowed == -EPERM || borrowed == -ENOSYS ? open_again(number) : borrowed;
}

int descriptors_take(int number) {
    const int borrowed = descriptors_borrow(number);
    if (borrowed < 0)
        return borrowed;
    const int taken = dup2(borrowed, number);
    const int error = errno;
    close(borrowed);
    return taken < 0 ? -error : 0;
}

void descriptors_drop(int number) {
    (void)dup2(STDIN_FILENO, number);
}
