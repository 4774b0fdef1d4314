#include "append_file.h"

#include "private_file.h"
#include "quiet_write.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* Keeps the lower numbers free for the program, which expects them for its own files. */
enum { FIRST_DESCRIPTOR = 100 };

/* --- opening --- */

/* Opens the file on a high descriptor, or on a low one if there is none. Opens it for reading, too,
 * if possible, because append_file_write_record() reads the last byte. Returns the descriptor, or
 * an error of private_file_open(). */
static int open_high(const char *path) {
    int low = private_file_open(path, O_RDWR | O_CREAT);
    if (low == -EACCES)
        low = private_file_open(path, O_WRONLY | O_CREAT);
    const int high = low < 0 ? -1 : fcntl(low, F_DUPFD_CLOEXEC, FIRST_DESCRIPTOR);
    if (high < 0) /* the file cannot be opened, or no descriptor is left */
        return low;
    close(low);
    return high;
}

/* Locks the file. On a file system without locks, succeeds without a lock. */
static int append_file_lock(int file) {
    return flock(file, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK ? -EWOULDBLOCK : 0;
}

/* --- writing --- */

/* Writes all pieces, and changes them. Usually needs one call; more if the kernel takes less at a
 * time. Returns 0 or -errno. `*written`: the number of bytes written, also on an error. */
static int append_file_write_all(int file, struct iovec *pieces, int count, size_t *written) {
    *written = 0;
    while (count > 0) {
        const ssize_t now = quiet_writev(file, pieces, count, true);
        if (now <= 0)
            return now < 0 ? (int)now : -EIO;
        *written += (size_t)now;
        const int left = pieces_advance(pieces, count, (size_t)now);
        pieces += count - left;
        count = left;
    }
    return 0;
}

static int append_file_write_record(int file, bool lines, const struct iovec *pieces, int count) {
    char newline[] = "\n";
    struct iovec all[MAX_PIECES + 1];
    struct stat status;
    char last = '\n';
    size_t written;
    if (fstat(file, &status) != 0)
        return -errno;
    if (!S_ISREG(status.st_mode))
        return -ENOTSUP;
    const off_t size = status.st_size;
    const bool is_unfinished =
        lines && size > 0 && pread(file, &last, 1, size - 1) == 1 && last != '\n';
    const int first = is_unfinished;
    all[0] = (struct iovec){newline, 1};
    memcpy(all + first, pieces, (size_t)count * sizeof *pieces);
    const int error = append_file_write_all(file, all, first + count, &written);
    /* removes the written part, unless another process has appended without the lock */
    if (error && written && fstat(file, &status) == 0 && status.st_size == size + (off_t)written)
        (void)!ftruncate(file, size);
    return error;
}

int append_file(const char *path, bool lines, const struct iovec *pieces, int count) {
    const int file = open_high(path);
    if (file < 0)
        return file;
    int error = append_file_lock(file);
    if (!error) {
        error = append_file_write_record(file, lines, pieces, count);
        flock(file, LOCK_UN);
    }
    /* network file systems and quotas may report errors only on close */
    if (close(file) != 0 && errno != EINTR && !error)
        error = -errno;
    return error;
}
