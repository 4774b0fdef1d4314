#include "safe_read.h"

#include "arch_memory.h"
#include "bare_syscall.h"
#include "readable_memory.h"
#include "seccomp_state.h"

#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>

/* Reads memory in one call. Uses this thread's id, because the process's id gives no access to
 * memory once the main thread has ended. */
static long read_at_once(uint64_t address, void *to, size_t size) {
    const struct iovec copy = {to, size};
    const struct iovec range = {(void *)(uintptr_t)address, size};
    const long thread = bare_syscall(SYS_gettid, 0, 0, 0, 0, 0, 0);
    return bare_syscall(SYS_process_vm_readv, thread, (long)&copy, 1, (long)&range, 1, 0);
}

/* Moves a piece through an empty pipe, which has room for PIPE_BUF bytes. */
static bool safe_read_piece(const int ends[2], uint64_t address, void *to, size_t size) {
    return bare_syscall(SYS_write, ends[1], (long)address, (long)size, 0, 0, 0) == (long)size &&
           bare_syscall(SYS_read, ends[0], (long)to, (long)size, 0, 0, 0) == (long)size;
}

static bool read_through_pipe(uint64_t address, void *to, size_t size) {
    int ends[2] = {-1, -1}; /* the bare call fills them, which analysers do not see */
    size_t done = 0;
    bool fits = true;
    if (bare_syscall(SYS_pipe2, (long)ends, O_CLOEXEC | O_NONBLOCK, 0, 0, 0, 0) != 0)
        return false;
    while (fits && done < size) {
        const size_t left = size - done;
        const size_t piece = left < PIPE_BUF ? left : PIPE_BUF;
        fits = safe_read_piece(ends, address + done, (char *)to + done, piece);
        done += piece;
    }
    bare_syscall(SYS_close, ends[0], 0, 0, 0, 0, 0);
    bare_syscall(SYS_close, ends[1], 0, 0, 0, 0, 0);
    return fits;
}

bool safe_read(uint64_t address, void *to, size_t size) {
    /* a filter may kill for process_vm_readv, and a kernel may lack the call */
    const bool may_copy = !seccomp_is_filtered();
    const long read = may_copy ? read_at_once(address, to, size) : -1;
    return !may_copy || (read < 0 && errno != EFAULT) ? read_through_pipe(address, to, size)
                                                      : read == (long)size;
}

/* --- on the program's threads --- */

static long copy_to_process(long id, const struct iovec *ranges, size_t count,
                            const struct iovec *copy) {
    return bare_syscall(SYS_process_vm_writev, id, (long)ranges, (long)count, (long)copy, 1, 0);
}

/* Copies ranges in one call. Names the process by its own id, because security monitors take a call
 * with another id for an injection of code; once the main thread has ended, only a thread's id
 * gives access to memory. Returns the number of bytes, up to the first that cannot be read; -1 if
 * that is the first one, or if the call is refused: errno is set. */
static long copy_ranges(const struct iovec *ranges, size_t count, void *to, size_t size) {
    const struct iovec copy = {to, size};
    const long process = bare_syscall(SYS_getpid, 0, 0, 0, 0, 0, 0);
    const long read = copy_to_process(process, ranges, count, &copy);
    if (read >= 0 || errno != ESRCH)
        return read;
    const long thread = bare_syscall(SYS_gettid, 0, 0, 0, 0, 0, 0);
    return copy_to_process(thread, ranges, count, &copy);
}

static struct {
    _Atomic uint32_t under_way;
    _Atomic uint32_t forbidden; /* filters for all threads that are being, or were, installed */
} kernel_copies;

void safe_read_forbid_copies(void) {
    atomic_fetch_add(&kernel_copies.forbidden, 1);
}

void safe_read_allow_copies(void) {
    atomic_fetch_sub(&kernel_copies.forbidden, 1);
}

bool safe_read_may_copy(void) {
    return atomic_load(&kernel_copies.forbidden) == 0;
}

bool safe_read_copies(void) {
    return atomic_load(&kernel_copies.under_way) > 0;
}

static bool copy_readable_pages(uint64_t address, void *to, size_t size) {
    size_t done = 0;
    while (done < size) {
        const uint64_t from = address + done;
        const size_t rest = ARCH_SMALLEST_PAGE_BYTES - from % ARCH_SMALLEST_PAGE_BYTES;
        const size_t part = size - done < rest ? size - done : rest;
        if (!word_is_readable(from))
            return false;
        memcpy((char *)to + done, (const void *)(uintptr_t)from, part);
        done += part;
    }
    return true;
}

/* Returns the number of bytes that the kernel has copied; -1: a filter or the kernel refuses the
 * call. */
static long copy_if_allowed(const struct iovec *ranges, size_t count, void *to, size_t size,
                            bool is_filtered) {
    const int saved = errno;
    atomic_fetch_add(&kernel_copies.under_way, 1);
    const bool may_copy = !is_filtered && safe_read_may_copy();
    const long read = may_copy ? copy_ranges(ranges, count, to, size) : -1;
    const bool is_refused = !may_copy || (read < 0 && errno != EFAULT);
    atomic_fetch_sub(&kernel_copies.under_way, 1);
    errno = saved;
    if (is_refused)
        return -1;
    return read < 0 ? 0 : read;
}

bool safe_read_here(uint64_t address, void *to, size_t size, bool is_filtered) {
    const struct iovec range = {(void *)(uintptr_t)address, size};
    const long read = copy_if_allowed(&range, 1, to, size, is_filtered);
    return read < 0 ? copy_readable_pages(address, to, size) : read == (long)size;
}

size_t safe_read_ranges_here(const struct iovec *ranges, size_t count, void *to, bool is_filtered) {
    size_t size = 0;
    size_t done = 0;
    size_t used = 0;
    for (size_t i = 0; i < count; i++)
        size += ranges[i].iov_len;
    const long read = copy_if_allowed(ranges, count, to, size, is_filtered);
    while (read > 0 && done < count && used + ranges[done].iov_len <= (size_t)read)
        used += ranges[done++].iov_len;
    return done;
}
