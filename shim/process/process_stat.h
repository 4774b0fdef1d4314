/* Reads the kernel's record of a process in /proc/PID/stat (proc(5)). */
#ifndef OTELPROF_PROCESS_STAT_H
#define OTELPROF_PROCESS_STAT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct process_stat {
    uint32_t pid;    /* id in the pid namespace that /proc was mounted for */
    uint32_t parent; /* the parent's id in that namespace; 0: the process has no parent there */
    bool is_dead;    /* the process has ended, and its parent has not waited for it */
    bool has_called_exec; /* since its fork; false if the kernel does not say so */
    /* start in ticks of 10 ms since boot: no later process with this pid has the same start */
    uint64_t started;
    uint32_t threads; /* number of threads; includes an ended main thread */
    int exit_status;  /* wait(2) status of the main thread, if it has ended */
};

/* Reads the record of the calling process. Returns false if there is no such file. Uses a
 * descriptor of the calling thread's table. Context: any. */
bool process_stat_read(struct process_stat *stat);

/* Reads the record of any process. Returns false if the process has ended, or is hidden. Context:
 * calm | flush. */
bool process_stat_read_of(pid_t pid, struct process_stat *stat);

/* Parses the text of /proc/PID/stat. Returns false if a field is missing. Context: any. */
bool process_stat_parse(const char *text, struct process_stat *stat);

#endif
