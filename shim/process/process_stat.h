/* What the kernel says of a process in /proc/PID/stat (proc(5)). */
#ifndef OTELPROF_PROCESS_STAT_H
#define OTELPROF_PROCESS_STAT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct process_stat {
    uint32_t pid;     /* in the namespace of ids that /proc was mounted for */
    bool is_dead;     /* ended, and its parent has not asked how */
    uint64_t started; /* after the boot, in ticks of 10 ms: no later process of this pid has it */
    uint32_t threads; /* with the main thread, which stays to the end, ended or not */
    int exit_status;  /* of the main thread, if it has ended: as wait(2) tells it */
};

/* Of the calling process. false: there is no such file here. Uses a descriptor of the calling
 * thread's table. Context: any. */
bool process_stat_read(struct process_stat *stat);

/* Of any process. false: it is gone, or it is not shown to us. Context: calm | flush. */
bool process_stat_read_of(pid_t pid, struct process_stat *stat);

/* The same of the text of that file. Context: any. */
bool process_stat_parse(const char *text, struct process_stat *stat);

#endif
