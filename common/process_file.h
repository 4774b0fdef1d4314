/* Reads files below /proc/PID, of this process or another. Context: calm | flush: libc's open() is
 * a cancellation point, and each open file takes a number of the calling thread's descriptors. */
#ifndef OTELPROF_PROCESS_FILE_H
#define OTELPROF_PROCESS_FILE_H

#include <stdbool.h>
#include <sys/types.h>

/* Opens /proc/PID/NAME, for example "task/12/comm", for reading; -1: it is not there, or may not be
 * read. */
int process_file_open(pid_t pid, const char *name);

/* Returns whether the file contains `text`, of at most 256 bytes. The match may span two of the
 * pieces in which the file is read. */
bool process_file_has(pid_t pid, const char *name, const char *text);

#endif
