#include "quiet_write.h"

#include "bare_syscall.h"
#include "restarts.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <time.h>

/* Takes back the signal of a write, so that the program does not receive it. The signal is pending
 * for the writing thread, which has blocked it. A signal that was pending for the process before
 * the write stays pending. */
static void discard_raised(sigset_t *raised, const sigset_t *pending_before) {
    const struct timespec now = {0};
    if (sigismember(pending_before, SIGPIPE))
        sigdelset(raised, SIGPIPE);
    if (sigismember(pending_before, SIGXFSZ))
        sigdelset(raised, SIGXFSZ);
    for (int restarts = 0; restarts <= MOST_RESTARTS; restarts++) {
        if (sigtimedwait(raised, NULL, &now) < 0 && errno != EINTR)
            return;
    }
}

/* Changes the mask by a bare system call, because the profiler hooks libc's function for the
 * program. */
static bool set_mask(int how, const sigset_t *set, sigset_t *before) {
    enum { KERNEL_SIGSET_BYTES = 8 };
    return bare_syscall(SYS_rt_sigprocmask, how, (long)set, (long)before, KERNEL_SIGSET_BYTES, 0,
                        0) == 0;
}

static ssize_t restarted_writev(int descriptor, const struct iovec *pieces, int count) {
    ssize_t written = -EINTR;
    for (int restarts = 0; written == -EINTR && restarts <= MOST_RESTARTS; restarts++) {
        written = writev(descriptor, pieces, count);
        if (written < 0)
            written = -errno;
    }
    return written;
}

ssize_t quiet_writev(int descriptor, const struct iovec *pieces, int count, bool is_helper) {
    sigset_t signals;
    sigset_t before;
    sigset_t pending;
    if (is_helper)
        return restarted_writev(descriptor, pieces, count);
    sigemptyset(&signals);
    sigaddset(&signals, SIGPIPE);
    sigaddset(&signals, SIGXFSZ);
    sigpending(&pending);
    if (!set_mask(SIG_BLOCK, &signals, &before))
        return -errno;
    const ssize_t written = restarted_writev(descriptor, pieces, count);
    if (written == -EPIPE || written == -EFBIG)
        discard_raised(&signals, &pending);
    (void)set_mask(SIG_SETMASK, &before, NULL);
    return written;
}

int pieces_advance(struct iovec *pieces, int count, size_t done) {
    for (int i = 0; i < count; i++) {
        if (done < pieces[i].iov_len) {
            pieces[i].iov_base = (char *)pieces[i].iov_base + done;
            pieces[i].iov_len -= done;
            return count - i;
        }
        done -= pieces[i].iov_len;
    }
    return 0;
}

size_t pieces_size(const struct iovec *pieces, int count) {
    size_t size = 0;
    for (int i = 0; i < count; i++)
        size += pieces[i].iov_len;
    return size;
}
