/* Forks a child that is profiled. A fork waits at most 20 ms for the helper; a helper that does not
 * get a processor in that time stays inside a library, and the child is not profiled
 * (otelprof.dropped.child). Such a child ends at once here, and the fork is made again: so a test
 * may expect the child's profile on a machine under any load. */
#ifndef TEST_FORKED_H
#define TEST_FORKED_H

#include "../../shim/otelprof.h"

#include <stdbool.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

static inline bool is_profiled(void) {
    struct otelprof_counters counters = {.size = sizeof counters};
    return otelprof_counters_read(&counters);
}

/* Returns true, in the parent, if the child has written that it is profiled. Otherwise waits for
 * the child's end and returns false. */
static inline bool child_is_profiled(pid_t child, const int ends[2]) {
    char byte;
    close(ends[1]);
    const bool is = syscall(SYS_read, ends[0], &byte, 1) == 1;
    close(ends[0]);
    if (!is)
        (void)syscall(SYS_wait4, child, NULL, 0, NULL);
    return is;
}

/* Returns as fork() does; without the profiler it is fork(). Makes the other calls by number: the
 * hooks would take those of a child as a sign that the child lives. */
static inline pid_t fork_profiled(void) {
    int ends[2];
    while (is_profiled()) {
        if (syscall(SYS_pipe2, ends, 0) != 0)
            abort();
        const pid_t child = fork();
        if (child < 0)
            return child;
        if (child > 0 && child_is_profiled(child, ends))
            return child;
        if (child > 0)
            continue;
        if (!is_profiled() || syscall(SYS_write, ends[1], "p", 1) != 1)
            _exit(0);
        close(ends[0]);
        close(ends[1]);
        return 0;
    }
    return fork();
}

#endif
