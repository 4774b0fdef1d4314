/* Reads memory of this process that may be unmapped at any moment: the application maps and unmaps
 * memory as it likes. Uses process_vm_readv(), which fails where a load would be a fault; behind a
 * seccomp filter it uses a pipe of its own, which fails, too.
 * Context: the helper. errno is changed.
 */
#ifndef OTELPROF_SAFE_READ_H
#define OTELPROF_SAFE_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Reads all of it. false: some of it is not there, or the system call is refused. */
bool safe_read(uint64_t address, void *to, size_t size);

#endif
