/* Reads memory of this process that the application may unmap at any moment, or that belongs to a
 * file that is cut short. The kernel copies it, which fails where a load would fault, and needs no
 * /proc, and no right that a process could give up. The helper uses process_vm_readv(), which pins
 * each page of the source; that takes several microseconds where these are not in the caches. A
 * thread of the program uses process_vm_writev() to its own process, which reads the source as a
 * program does, and pins only pages of the copy, which are few and in the caches. (Valgrind takes
 * such a copy for one to another process, and its bytes for undefined.)
 *
 * Behind a seccomp filter, which may kill for that call, and on a kernel without the call the
 * helper writes the memory to a pipe of its own, which fails in the same way. A thread of the
 * program must open no descriptor: there the kernel checks each page, by a call that every filter
 * allows, right before the page is copied.
 */
#ifndef OTELPROF_SAFE_READ_H
#define OTELPROF_SAFE_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

/* Reads `size` bytes. Returns false if some of them are not readable, or the system call is
 * refused. Context: the helper. errno is changed. */
bool safe_read(uint64_t address, void *to, size_t size);

/* Reads as safe_read() does, on a thread of the program. `is_filtered`: result of
 * seccomp_is_filtered(), which needs one call for each sample. Cost: 0.5 to 0.6 µs for up to a
 * page if the kernel's code is in the caches, else up to 30 µs; behind a filter 0.1 µs for each
 * page. Context: any. Async-signal-safe: yes; errno is preserved. */
bool safe_read_here(uint64_t address, void *to, size_t size, bool is_filtered);

/* Reads `count` ranges in one call, one behind the other to `to`. Returns the number of ranges,
 * from the first on, that were read as a whole: the first one that is not readable ends the call.
 * Returns 0 behind a filter, or if the kernel refuses the call: the caller may then read the ranges
 * that it needs by safe_read_here(). Otherwise as safe_read_here(). */
size_t safe_read_ranges_here(const struct iovec *ranges, size_t count, void *to, bool is_filtered);

/* Forbids the kernel's copies on the program's threads, because a filter for all threads is about
 * to be installed, which may kill for that call. Context: any. Async-signal-safe: yes. */
void safe_read_forbid_copies(void);

/* Takes one safe_read_forbid_copies() back: the kernel has refused that filter. Context: any.
 * Async-signal-safe: yes. */
void safe_read_allow_copies(void);

/* Returns true while safe_read_here() may use the kernel's copies. Context: any. Async-signal-safe:
 * yes. */
bool safe_read_may_copy(void);

/* Returns true while a thread is in such a copy. In a forked child also returns true if a thread of
 * the parent was in one at the fork. */
bool safe_read_copies(void);

#endif
