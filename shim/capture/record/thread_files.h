/* What /proc says of a thread of this process. Read by system calls alone: no call here is a
 * cancellation point, or may be a function of the program's. Context: any. */
#ifndef OTELPROF_THREAD_FILES_H
#define OTELPROF_THREAD_FILES_H

#include "thread_table.h"

#include <stdbool.h>
#include <stdint.h>

/* "" if it is gone, or /proc is out of sight. */
void thread_name_read(uint32_t tid, char name[static THREAD_NAME_BYTES]);

/* The signals that it blocks, as the kernel has them. false: likewise. */
bool thread_mask_read(uint32_t tid, uint64_t *mask);

#endif
