/* Reads files in /proc of a thread of this process, by system calls alone: so no call here is a
 * cancellation point, or can be a function of the program. Context: any. Async-signal-safe: yes.
 * Preserves errno. */
#ifndef OTELPROF_THREAD_FILES_H
#define OTELPROF_THREAD_FILES_H

#include "thread_table.h"

#include <stdbool.h>
#include <stdint.h>

/* Sets `name` to "" if the thread has ended, or /proc is not visible. */
void thread_name_read(uint32_t tid, char name[static THREAD_NAME_BYTES]);

/* Reads the number behind `title` ("\nTracerPid:\t") in the thread's status; 0 is the calling
 * thread. Reads in pieces, because the list of groups before the line may be long. Returns false if
 * the file cannot be read, or has no such line. */
bool thread_status_read(uint32_t tid, const char *title, unsigned base, uint64_t *number);

#endif
