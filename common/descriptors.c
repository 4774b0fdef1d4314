#include "descriptors.h"

#include <limits.h>
#include <linux/close_range.h>
#include <sys/syscall.h>
#include <unistd.h>

bool descriptors_separate(void) {
    if (syscall(SYS_close_range, 0, UINT_MAX, CLOSE_RANGE_UNSHARE) != 0)
        return false;
    for (int i = 0; i <= STDERR_FILENO; i++)
        (void)syscall(SYS_epoll_create1, 0); /* works in any root; reading and writing fail */
    return true;
}

int descriptors_borrow(int number) {
    const int process = (int)syscall(SYS_pidfd_open, getpid(), 0);
    if (process < 0)
        return -1;
    const int borrowed = (int)syscall(SYS_pidfd_getfd, process, number, 0);
    close(process);
    return borrowed < 0 ? -1 : borrowed;
}

bool descriptors_take(int number) {
    const int borrowed = descriptors_borrow(number);
    if (borrowed < 0)
        return false;
    const bool taken = dup2(borrowed, number) == number;
    close(borrowed);
    return taken;
}

void descriptors_drop(int number) {
    (void)dup2(STDIN_FILENO, number);
}
