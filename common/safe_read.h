/* Reads memory of this process that may be unmapped at any moment, or be part of a file that is cut
 * short: the application maps and unmaps memory as it likes. Uses process_vm_readv(), which fails
 * where a load would be a fault. It needs no /proc, and no right that a process could give up.
 *
 * Behind a seccomp filter, where that call may kill, the helper uses a pipe of its own, which
 * fails, too. A thread of the program must open no descriptor, so there the kernel checks each
 * page, by a call that every filter allows, right before it is copied.
 */
#ifndef OTELPROF_SAFE_READ_H
#define OTELPROF_SAFE_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Reads all of it. false: some of it is not there, or the system call is refused. Context: the
 * helper. errno is changed. */
bool safe_read(uint64_t address, void *to, size_t size);

/* Does the same on a thread of the program. `is_filtered`: see seccomp_is_filtered(); query it
 * once for each sample. Cost: 0.5 to 0.6 µs for a page or less, whichever it is; behind a filter
 * 0.1 µs for each page. Context: any. Async-signal-safe: yes; errno is preserved. */
bool safe_read_here(uint64_t address, void *to, size_t size, bool is_filtered);

/* Forbids the kernel's copies on the program's threads, for good: a filter for all threads is about
 * to be installed, which may kill for that call. Context: any. Async-signal-safe: yes. */
void safe_read_forbid_copies(void);

/* Returns whether a thread is in such a copy, or was when another thread of its parent forked. */
bool safe_read_copies(void);

#endif
