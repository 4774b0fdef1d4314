/* Threads of the process that are in no profile, because they were not made by our pthread_create.
 *
 * By a bare clone, or past every preload: by a pthread_create that dlsym found in libc (Free
 * Pascal's cthreads), in a library that is just being loaded with RTLD_DEEPBIND, in a C library of
 * its own (dlmopen). The kernel lists them. So at each harvest its number of threads is compared
 * with ours, and only where they differ is the list read. A thread counts once, when it has used
 * some CPU time: before that nothing is lost, and it may be one of ours that is about to begin.
 */
#ifndef OTELPROF_UNKNOWN_THREADS_H
#define OTELPROF_UNKNOWN_THREADS_H

#include "thread_table.h"

#include <stdint.h>
#include <sys/types.h>

enum { UNKNOWN_MOST = 256 }; /* more are not counted */

struct unknown_threads {
    pid_t process; /* that they are of; a forked child begins anew */
    uint32_t count;
    uint32_t tids[UNKNOWN_MOST];
};

/* Those that there are now, whatever they have used. Looks at 4,096 threads at most; at none where
 * the kernel counts as many as we do. Context: the helper, with threads swept. */
void unknown_threads_visit(const struct thread_table *known, void (*visit)(void *arg, uint32_t tid),
                           void *arg);

/* How many there have been so far in `process`, the calling one: of those that were there at a call
 * of this. Context: likewise. */
uint32_t unknown_threads_count(struct unknown_threads *unknown, const struct thread_table *known,
                               pid_t process);

#endif
