/* Reads memory of this process that may be gone, or go, at any moment: what the application maps
 * and unmaps is its own affair. By process_vm_readv(), which fails where a load would be a fault;
 * behind a seccomp filter through a pipe of its own, which does, too.
 * Context: the helper. errno is changed.
 */
#ifndef OTELPROF_SAFE_READ_H
#define OTELPROF_SAFE_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* All of it, or false: some of it is not there, or the system call is refused. */
bool safe_read(uint64_t address, void *to, size_t size);

#endif
