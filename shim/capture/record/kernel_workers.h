/* Records the CPU time of threads that the kernel runs inside of the process: io_uring's pollers
 * (iou-sqp) and workers (iou-wrk).
 *
 * The kernel lists such threads among the process's threads, and their CPU time is the process's.
 * But such threads have no stack of the program's, take no signal, and do not come from
 * pthread_create.
 * So each harvest reads their CPU clocks and records the time without frames. The kernel marks such
 * threads by flags of the task. Their CPU time between the last harvest and their end is in no
 * profile.
 *
 * Context: the helper.
 */
#ifndef OTELPROF_KERNEL_WORKERS_H
#define OTELPROF_KERNEL_WORKERS_H

#include "thread_table.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum { KERNEL_WORKERS = 256 }; /* number of such threads that are recorded at most */

struct kernel_worker {
    uint32_t tid;
    bool is_listed; /* the present harvest has found the thread */
    uint64_t cpu_ns;
};

struct kernel_workers {
    pid_t process; /* the process of the workers; a forked child begins again */
    uint32_t count;
    struct kernel_worker workers[KERNEL_WORKERS];
};

/* listed_thread_open() returns a descriptor of the thread; listed_thread_close() closes it, and
 * returns the kind of the thread. The descriptor keeps the identity: if the thread has ended in
 * between, the result is LISTED_ENDED, even where another thread has its id by now. `*runs`: set to
 * true if the thread is on a processor or ready, otherwise to false; unchanged with LISTED_ENDED.
 */
enum listed_thread { LISTED_ENDED, LISTED_OF_PROGRAM, LISTED_OF_KERNEL };
int listed_thread_open(uint32_t tid);
enum listed_thread listed_thread_close(int file, bool *runs);

/* Returns true if the kernel runs this thread of the process. `*runs`: as for
 * listed_thread_close(). */
bool kernel_worker_is(uint32_t tid, bool *runs);

/* Visits each such thread of `process`, the calling one, that has used CPU time since the last
 * visit, with that time in nanoseconds. Leaves out threads beyond KERNEL_WORKERS. */
void kernel_workers_visit(struct kernel_workers *workers, const struct thread_table *known,
                          pid_t process, void (*visit)(void *arg, uint32_t tid, uint64_t nano),
                          void *arg);

#endif
