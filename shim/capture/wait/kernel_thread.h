/* Reads the kernel's view of a thread of this process: the system call that it is blocked in, and
 * its CPU and run-queue time.
 *
 * The source is /proc/self/task/TID. The files stay open for the threads that are polled most, in
 * the helper's own descriptor table; files that were open before the process changed its user stay
 * readable, all others are then refused. If /proc is not visible, or shows another namespace of
 * process ids, only the CPU clock is known.
 *
 * Context: the helper.
 */
#ifndef OTELPROF_KERNEL_THREAD_H
#define OTELPROF_KERNEL_THREAD_H

#include "blocked_call.h"
#include "refused_file.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Holds the descriptors of a thread's files; 0: the file is not open. */
struct thread_files {
    int call;
    int times;
};

/* Holds the state of the open descriptors, and their limit. */
struct kernel_view {
    /* the thread that opened the files; another helper has another descriptor table */
    pid_t helper;
    bool is_separate;  /* the helper does not share its descriptor table */
    bool sees_threads; /* /proc shows this process's threads, under the ids that they know */
    uint32_t open;     /* number of files kept open */
    uint32_t most;     /* limit of `open` */
    /* refused if the process has changed its user: the files are root's then */
    struct refused_file refused_call;
    struct refused_file refused_times;
};

struct thread_times {
    uint64_t cpu_ns;
    uint64_t delay_ns;
};

enum thread_run_state { RUN_UNKNOWN, RUN_RUNNING, RUN_BLOCKED };

/* Prepares a poll. `is_separate`: the calling thread does not share its descriptor table. Returns
 * true if the last caller was another thread, or if there was none; the caller must then forget all
 * thread_files. */
bool kernel_view_follow(struct kernel_view *view, bool is_separate);

/* Returns the thread's state; sets `*call` if it is RUN_BLOCKED. RUN_UNKNOWN: the thread's file
 * cannot be read. */
enum thread_run_state kernel_thread_run_state(struct kernel_view *view, uint32_t tid,
                                              struct thread_files *files,
                                              struct blocked_call *call);

/* Reads the times that the thread has used so far; they are exact while the thread is blocked. The
 * run-queue delay is 0 if it is not known. Returns false if the thread has ended. */
bool kernel_thread_times(struct kernel_view *view, uint32_t tid, struct thread_files *files,
                         struct thread_times *times);

/* Reads the run-queue delay alone. Returns false if it is not known. */
bool kernel_thread_delay(struct kernel_view *view, uint32_t tid, struct thread_files *files,
                         uint64_t *delay_ns);

/* Reads the times of the calling thread, by files in the process's own descriptor table. The
 * run-queue delay is 0 if the thread may not open files, or if /proc cannot be read. Context: at
 * start, or in a forked child. */
void kernel_own_times(struct thread_times *times, bool may_open);

/* Closes the files of a thread that has ended. */
void kernel_thread_close(struct kernel_view *view, struct thread_files *files);

#endif
