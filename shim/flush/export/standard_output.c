#include "standard_output.h"

#include "clock.h"
#include "descriptors.h"
#include "quiet_write.h"

#include <errno.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    TIMEOUT_MS = 2000,
    /* Bounds one write: if poll() reports a descriptor as writable, a write of so many bytes does
     * not block: pipe(7), PIPE_BUF on Linux. */
    CHUNK_BYTES = 4096,
};

static int wait_until_writable(uint64_t deadline) {
    struct pollfd output = {.fd = STDOUT_FILENO, .events = POLLOUT};
    const uint64_t now = monotonic_nano();
    if (now >= deadline)
        return -EAGAIN;
    const int ready = poll(&output, 1, (int)((deadline - now) / NANO_PER_MILLI) + 1);
    if (ready < 0 && errno != EINTR)
        return -errno;
    return 0;
}

/* Writes from `pieces` as much as the descriptor takes without blocking, at most one chunk;
 * `at_once`: the descriptor never blocks, so all pieces are written. Returns the number of bytes
 * written, 0 if the descriptor takes none now, or -errno. */
static ssize_t write_some(const struct iovec *pieces, int count, bool at_once) {
    struct pollfd output = {.fd = STDOUT_FILENO, .events = POLLOUT};
    struct iovec chunk = pieces[0];
    if (at_once)
        return quiet_writev(STDOUT_FILENO, pieces, count, true);
    if (poll(&output, 1, 0) <= 0)
        return 0;
    if (chunk.iov_len > CHUNK_BYTES)
        chunk.iov_len = CHUNK_BYTES;
    const ssize_t now = quiet_writev(STDOUT_FILENO, &chunk, 1, true);
    return now == -EAGAIN ? 0 : now;
}

static int output_write_all(const struct origin *origin, struct iovec *pieces, int count,
                            size_t *written) {
    const uint64_t deadline = monotonic_nano() + TIMEOUT_MS * NANO_PER_MILLI;
    struct stat status;
    /* a regular file never blocks */
    const bool at_once = fstat(STDOUT_FILENO, &status) == 0 && S_ISREG(status.st_mode);
    *written = 0;
    while (count > 0) {
        if (!origin_output_is_unchanged(origin))
            return -EBADF;
        const ssize_t now = write_some(pieces, count, at_once);
        if (now < 0)
            return (int)now;
        *written += (size_t)now;
        const int left = pieces_advance(pieces, count, (size_t)now);
        pieces += count - left;
        count = left;
        const int error = now == 0 ? wait_until_writable(deadline) : 0;
        if (error)
            return error;
    }
    return 0;
}

int standard_output_write(const struct log *log, const struct origin *origin, struct iovec *pieces,
                          int count, size_t *written) {
    const bool take = log_thread_is_separate(log);
    *written = 0;
    int error = take ? descriptors_take(STDOUT_FILENO) : 0;
    if (error)
        return error;
    error = output_write_all(origin, pieces, count, written);
    if (take)
        descriptors_drop(STDOUT_FILENO);
    return error;
}
