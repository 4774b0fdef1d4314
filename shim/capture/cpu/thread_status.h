/* Reads one line of /proc/thread-self/status, which the kernel reports for the calling thread only.
 * Uses system calls alone, in pieces, because the list of groups before the line has any length. */
#ifndef OTELPROF_THREAD_STATUS_H
#define OTELPROF_THREAD_STATUS_H

#include <stdbool.h>

enum { THREAD_STATUS_BYTES = 20 };

/* Copies the number behind `title` ("\nTracerPid:\t"), up to its end or 19 digits. Returns false if
 * the file cannot be read, or has no such line. Context: any. Async-signal-safe: yes. Preserves
 * errno. */
bool thread_status_read(const char *title, char value[static THREAD_STATUS_BYTES]);

#endif
