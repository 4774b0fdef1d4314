#include "blocked_call.h"

#include "text_numbers.h"

#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>

/* Define the numbers of calls that the kernel's headers lack on older systems. */
#ifndef __NR_futex_waitv
#define __NR_futex_waitv 449
#endif
#ifndef __NR_epoll_pwait2
#define __NR_epoll_pwait2 441
#endif
#ifndef __NR_io_uring_enter
#define __NR_io_uring_enter 426
#endif

/* --- parsing: "0 0x3 0x55a8 0x2000 0x0 0x0 0x0 0x7ffe 0x7f85", or "-1 0x7ffe 0x7f85" --- */

bool blocked_call_parse(const char *text, struct blocked_call *call) {
    uint64_t words[8] = {0};
    uint64_t number;
    const bool is_negative = *text == '-';
    const int count = is_negative ? 2 : 8;
    const char *at = number_read(text + is_negative, 10, &number);
    call->number = is_negative ? -(long)number : (long)number;
    for (int i = 0; at && i < count; i++) {
        at += strspn(at, " ");
        at = at[0] == '0' && at[1] == 'x' ? number_read(at + 2, 16, &words[i]) : NULL;
    }
    if (!at)
        return false;
    memset(call->arguments, 0, sizeof call->arguments);
    if (count == 8)
        memcpy(call->arguments, words, sizeof call->arguments);
    call->stack_pointer = words[count - 2];
    call->pc = words[count - 1];
    return true;
}

/* --- the kind of wait --- */

struct number_kind {
    long number;
    enum wait_kind kind;
};

/* Lists the calls that both architectures have first, then the older calls of x86-64. */
static const struct number_kind kinds[] = {
    {__NR_futex, WAIT_FUTEX},
    {__NR_futex_waitv, WAIT_FUTEX},
    {__NR_nanosleep, WAIT_SLEEP},
    {__NR_clock_nanosleep, WAIT_SLEEP},
    {__NR_rt_sigsuspend, WAIT_SLEEP},
    {__NR_rt_sigtimedwait, WAIT_SLEEP},
    {__NR_restart_syscall, WAIT_SLEEP},
    {__NR_ppoll, WAIT_POLL},
    {__NR_pselect6, WAIT_POLL},
    {__NR_epoll_pwait, WAIT_POLL},
    {__NR_epoll_pwait2, WAIT_POLL},
    {__NR_accept, WAIT_ACCEPT},
    {__NR_accept4, WAIT_ACCEPT},
    {__NR_connect, WAIT_NET},
    {__NR_recvfrom, WAIT_NET},
    {__NR_recvmsg, WAIT_NET},
    {__NR_recvmmsg, WAIT_NET},
    {__NR_sendto, WAIT_NET},
    {__NR_sendmsg, WAIT_NET},
    {__NR_sendmmsg, WAIT_NET},
    {__NR_read, WAIT_IO},
    {__NR_readv, WAIT_IO},
    {__NR_pread64, WAIT_IO},
    {__NR_preadv, WAIT_IO},
    {__NR_preadv2, WAIT_IO},
    {__NR_write, WAIT_IO},
    {__NR_writev, WAIT_IO},
    {__NR_pwrite64, WAIT_IO},
    {__NR_pwritev, WAIT_IO},
    {__NR_pwritev2, WAIT_IO},
    {__NR_sendfile, WAIT_IO},
    {__NR_splice, WAIT_IO},
    {__NR_tee, WAIT_IO},
    {__NR_vmsplice, WAIT_IO},
    {__NR_copy_file_range, WAIT_IO},
    {__NR_io_uring_enter, WAIT_IO},
    {__NR_io_getevents, WAIT_IO},
    {__NR_openat, WAIT_IO},
    {__NR_ioctl, WAIT_IO},
    {__NR_fsync, WAIT_SYNC},
    {__NR_fdatasync, WAIT_SYNC},
    {__NR_msync, WAIT_SYNC},
    {__NR_sync_file_range, WAIT_SYNC},
    {__NR_sync, WAIT_SYNC},
    {__NR_syncfs, WAIT_SYNC},
    {__NR_flock, WAIT_FILE_LOCK},
    {__NR_wait4, WAIT_PROCESS},
    {__NR_waitid, WAIT_PROCESS},
    {__NR_msgrcv, WAIT_QUEUE},
    {__NR_msgsnd, WAIT_QUEUE},
    {__NR_semop, WAIT_QUEUE},
    {__NR_semtimedop, WAIT_QUEUE},
    {__NR_mq_timedreceive, WAIT_QUEUE},
    {__NR_mq_timedsend, WAIT_QUEUE},
#ifdef __NR_poll
    {__NR_poll, WAIT_POLL},
    {__NR_select, WAIT_POLL},
    {__NR_epoll_wait, WAIT_POLL},
    {__NR_pause, WAIT_SLEEP},
    {__NR_open, WAIT_IO},
#endif
};

/* Returns true if the call is fcntl(2) on a lock, the only fcntl(2) that waits. */
static bool waits_for_file_lock(const struct blocked_call *call) {
    return call->number == __NR_fcntl &&
           (call->arguments[1] == F_SETLKW || call->arguments[1] == F_OFD_SETLKW);
}

enum wait_kind blocked_call_kind(const struct blocked_call *call) {
    if (call->number < 0)
        return WAIT_MEMORY;
    if (waits_for_file_lock(call))
        return WAIT_FILE_LOCK;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (kinds[i].number == call->number)
            return kinds[i].kind;
    return WAIT_OTHER;
}
