/* What the kernel says of the process in /proc/self/stat (proc(5)). */
#ifndef OTELPROF_PROCESS_STAT_H
#define OTELPROF_PROCESS_STAT_H

#include <stdbool.h>
#include <stdint.h>

struct process_stat {
    uint32_t threads; /* with the main thread, which stays to the end, ended or not */
    int exit_status;  /* of the main thread, if it has ended: as wait(2) tells it */
};

/* false: there is no such file here. Uses a descriptor of the calling thread's table. Context:
 * any. */
bool process_stat_read(struct process_stat *stat);

/* The same of the text of that file. Context: any. */
bool process_stat_parse(const char *text, struct process_stat *stat);

#endif
