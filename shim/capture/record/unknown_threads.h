/* Finds threads of the process that are in no profile, because the profiler's pthread_create did
 * not make them.
 *
 * They come from a bare clone, or from another pthread_create: one that dlsym found in libc (Free
 * Pascal's cthreads), one in a library that is just being loaded with RTLD_DEEPBIND, or one in a C
 * library of its own (dlmopen). The kernel lists such threads. So each harvest compares the
 * kernel's number of threads with the table's, and reads the kernel's list only if they differ. A
 * thread counts once, when it has used some CPU time: until then no sample is lost, and it may be a
 * thread of the table that is about to begin.
 */
#ifndef OTELPROF_UNKNOWN_THREADS_H
#define OTELPROF_UNKNOWN_THREADS_H

#include "thread_table.h"

#include <stdint.h>
#include <sys/types.h>

enum { UNKNOWN_MOST = 256 }; /* at most so many unknown threads are counted */

struct unknown_threads {
    pid_t process; /* the process of the unknown threads; a forked child begins again */
    uint32_t count;
    uint32_t tids[UNKNOWN_MOST];
};

/* Visits the unknown threads that exist now, even those that have used no CPU time. Checks at most
 * some 4,096 threads. Checks none if the kernel counts only the table's threads and the helper, or
 * if there is no memory. Context: the helper, after ended threads were swept. */
void unknown_threads_visit(const struct thread_table *known, void (*visit)(void *arg, uint32_t tid),
                           void *arg);

/* Returns the number of unknown threads so far in `process`, the calling process. Counts only
 * threads that existed during a call of this function, and no threads of the kernel
 * (kernel_workers.h). Context: as unknown_threads_visit().
 */
uint32_t unknown_threads_count(struct unknown_threads *unknown, const struct thread_table *known,
                               pid_t process);

#endif
