/* What the kernel says of a thread of this process while it stands still: where it is blocked, and
 * what became of its time. From /proc/self/task/TID, whose files stay open for the threads that are
 * looked at most, in the helper's own table of descriptors; where /proc is out of sight, or shows
 * another namespace of process ids, the CPU clock alone is known.
 *
 * Context: the helper.
 */
#ifndef OTELPROF_KERNEL_THREAD_H
#define OTELPROF_KERNEL_THREAD_H

#include "blocked_call.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Descriptors of a thread's files; 0: not open. */
struct thread_files {
    int call;
    int times;
};

/* Whose descriptors those are, and whether there may be any. */
struct kernel_view {
    pid_t helper;      /* the thread that opened them; another one has another table */
    bool is_separate;  /* its table is its own */
    bool sees_threads; /* /proc shows this process's threads, under the ids that they know */
    uint32_t open;     /* files kept open */
    uint32_t most;     /* that may be */
};

struct thread_times {
    uint64_t cpu;
    uint64_t delay;
};

enum thread_stand { STAND_UNKNOWN, STAND_RUNS, STAND_BLOCKED };

/* Before each look. `is_separate`: the calling thread's table of descriptors is its own. true: it
 * is another thread than before, all thread_files are to be forgotten. */
bool kernel_view_follow(struct kernel_view *view, bool is_separate);

/* STAND_UNKNOWN: the files are not there. */
enum thread_stand kernel_thread_stand(struct kernel_view *view, uint32_t tid,
                                      struct thread_files *files, struct blocked_call *call);

/* How its time was spent so far; exact while it is blocked. false: it is gone. */
bool kernel_thread_times(struct kernel_view *view, uint32_t tid, struct thread_files *files,
                         struct thread_times *times);

/* The same of the calling thread, by files of the process's table. Context: at start, or in a
 * forked child. */
void kernel_own_times(struct thread_times *times);

/* The thread is gone. */
void kernel_thread_close(struct kernel_view *view, struct thread_files *files);

#endif
