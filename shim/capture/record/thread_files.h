/* Files of a thread of this process in /proc. They are read by system calls alone: no call here is
 * a cancellation point, or may be a function of the program. Context: any. */
#ifndef OTELPROF_THREAD_FILES_H
#define OTELPROF_THREAD_FILES_H

#include "thread_table.h"

#include <stdbool.h>
#include <stdint.h>

/* Sets the name to "" if the thread is gone, or /proc is not visible. */
void thread_name_read(uint32_t tid, char name[static THREAD_NAME_BYTES]);

/* Reads the set of signals that the thread blocks. Returns false in the same cases. */
bool thread_mask_read(uint32_t tid, uint64_t *mask);

#endif
