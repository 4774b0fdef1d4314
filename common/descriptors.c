#include "descriptors.h"

#include "seccomp_state.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/close_range.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { PATH_BYTES = 32, INFO_BYTES = 512 };

bool descriptors_separate(void) {
    if (syscall(SYS_close_range, 0, UINT_MAX, CLOSE_RANGE_UNSHARE) != 0)
        return false;
    for (int i = 0; i <= STDERR_FILENO; i++)
        (void)syscall(SYS_epoll_create1, 0); /* works in any root; reading and writing fail */
    return true;
}

/* --- borrowing --- */

static int duplicate(int number) {
    const int process = (int)syscall(SYS_pidfd_open, getpid(), 0);
    if (process < 0)
        return -errno;
    const int borrowed = (int)syscall(SYS_pidfd_getfd, process, number, 0);
    const int error = errno;
    close(process);
    return borrowed < 0 ? -error : borrowed;
}

/* /proc/self is the process's main thread. `number` is a digit. */
static void path_of(char path[static PATH_BYTES], const char *folder, int number) {
    char *const end = stpcpy(stpcpy(path, "/proc/self/"), folder);
    end[0] = '/';
    end[1] = (char)('0' + number);
    end[2] = 0;
}

/* 0: it is not there. */
static unsigned octal_behind(const char *text, const char *word) {
    const char *const found = strstr(text, word);
    const char *at = found ? found + strlen(word) : "";
    unsigned value = 0;
    for (; *at >= '0' && *at <= '7'; at++)
        value = value * 8 + (unsigned)(*at - '0');
    return value;
}

static bool appends(int number) {
    char path[PATH_BYTES];
    char text[INFO_BYTES];
    path_of(path, "fdinfo", number);
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t size = file < 0 ? -1 : read(file, text, sizeof text - 1);
    if (file >= 0)
        close(file);
    text[size < 0 ? 0 : size] = 0;
    return octal_behind(text, "flags:\t") & O_APPEND;
}

/* Each opening of a file has a position of its own: the program's next line would be written over
 * ours, unless every line goes to the end. */
static bool has_one_position(int file, int number) {
    struct stat status;
    return syscall(SYS_fstat, file, &status) == 0 && (!S_ISREG(status.st_mode) || appends(number));
}

static int set_blocking(int file) {
    const long flags = syscall(SYS_fcntl, file, F_GETFL, 0);
    return flags < 0 || syscall(SYS_fcntl, file, F_SETFL, flags & ~O_NONBLOCK) != 0 ? -errno : file;
}

/* The same file by its name in /proc; a socket has none. Not blocking while it is opened: nobody
 * may have the pipe open for reading. */
static int open_again(int number) {
    char path[PATH_BYTES];
    path_of(path, "fd", number);
    const int file = open(path, O_WRONLY | O_APPEND | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
    if (file < 0)
        return -errno;
    const int result = has_one_position(file, number) ? set_blocking(file) : -EPERM;
    if (result < 0)
        close(file);
    return result;
}

int descriptors_borrow(int number) {
    if (seccomp_is_filtered()) /* pidfd_getfd may kill */
        return open_again(number);
    const int borrowed = duplicate(number);
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
