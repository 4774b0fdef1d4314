/* What /proc says of a thread of this process. Context: the helper. */
#ifndef OTELPROF_THREAD_FILES_H
#define OTELPROF_THREAD_FILES_H

#include "thread_table.h"

#include <stdint.h>

/* "" if it is gone, or /proc is out of sight. */
void thread_name_read(uint32_t tid, char name[static THREAD_NAME_BYTES]);

#endif
