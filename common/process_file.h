/* Files below /proc/PID, of this process or another. Context: calm | flush: libc's open() is a
 * cancellation point, and each open file takes a number of the calling thread's descriptors. */
#ifndef OTELPROF_PROCESS_FILE_H
#define OTELPROF_PROCESS_FILE_H

#include <stdbool.h>
#include <sys/types.h>

/* Opens /proc/PID/NAME, "task/12/comm" for one, for reading; -1: it is not there, or not for us. */
int process_file_open(pid_t pid, const char *name);

/* Whether the file has `text` in it, of 256 bytes at most, which may lie in any two of the pieces
 * that the file is read in. */
bool process_file_has(pid_t pid, const char *name, const char *text);

#endif
