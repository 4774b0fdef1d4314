/* Returns the working directory of the process.
 *
 * Uses the system call: libc's getcwd() falls back on searching folders, with malloc, and returns
 * an unreachable place ("(unreachable)...") as a path. Context: any. Async-signal-safe: yes.
 */
#ifndef OTELPROF_WORKING_DIRECTORY_H
#define OTELPROF_WORKING_DIRECTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Stores an absolute path. Returns false, and stores "", if there is none, or if it does not
 * fit. */
static inline bool working_directory(char *path, size_t size) {
    if (syscall(SYS_getcwd, path, size) <= 0 || path[0] != '/')
        path[0] = 0;
    return path[0] != 0;
}

#endif
