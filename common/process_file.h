/* Reads files below /proc, of this process or another, and finds values in their text. Uses bare
 * system calls: so no call here is a cancellation point, or can be a function of the program. Each
 * open file takes a number of the calling thread's descriptors. Context: any. Async-signal-safe:
 * yes. */
#ifndef OTELPROF_PROCESS_FILE_H
#define OTELPROF_PROCESS_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Open a file for reading: any path, /proc/PID/NAME (for example "task/12/comm"), or
 * /proc/self/task/TID/NAME. Return a descriptor, or a negative errno if the file cannot be
 * opened. */
int process_file_open_path(const char *path);
int process_file_open(pid_t pid, const char *name);
int process_file_open_thread(uint32_t tid, const char *name);

/* Closes a file that one of the functions above has opened. */
void process_file_close(int file);

/* Reads the beginning of the file into `text`, and closes the file. Returns false, and `text` is
 * "", if the file was not opened, cannot be read, or is empty. */
bool process_file_text(int file, char *text, size_t room);

/* Finds the line that begins with `key` and the character `end`, and returns the text behind that
 * character; NULL: there is no such line. */
const char *process_text_value(const char *text, const char *key, char end);

/* Returns field `number`, from 3 (the state) on, of the text of a stat file (proc(5)); NULL: there
 * are fewer fields. The name before the state may contain any character. */
const char *process_stat_field(const char *text, int number);

/* Returns whether the file contains `text`, of at most 256 bytes; false, too, if the file cannot be
 * read. The match may span two of the pieces in which the file is read. */
bool process_file_has(pid_t pid, const char *name, const char *text);

#endif
