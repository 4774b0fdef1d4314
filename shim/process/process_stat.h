/* Reads the kernel's record of a process in /proc/PID/stat (proc(5)). */
#ifndef OTELPROF_PROCESS_STAT_H
#define OTELPROF_PROCESS_STAT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct process_stat {
    uint32_t pid;     /* in the namespace of ids that /proc was mounted for */
    bool is_dead;     /* ended, and its parent has not waited for it */
    uint64_t started; /* ticks of 10 ms since boot: no later process of this pid has the same */
    uint32_t threads; /* includes the main thread, which stays to the end, ended or not */
    int exit_status;  /* wait(2) status of the main thread, if it has ended */
};

/* Reads the calling process. Returns false if there is no such file here. Uses a descriptor of the
 * calling thread's table. Context: any. */
bool process_stat_read(struct process_stat *stat);

/* Reads any process. Returns false if it is gone, or hidden. Context: calm | flush. */
bool process_stat_read_of(pid_t pid, struct process_stat *stat);

/* Parses the text of that file. Context: any. */
bool process_stat_parse(const char *text, struct process_stat *stat);

#endif
