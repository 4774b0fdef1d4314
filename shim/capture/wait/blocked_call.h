/* Finds the system call that a thread is blocked in. The kernel reports the call in
 * /proc/PID/task/TID/syscall (proc(5)) without waking the thread; a process may always read this
 * file of its own threads.
 *
 * Context: any.
 */
#ifndef OTELPROF_BLOCKED_CALL_H
#define OTELPROF_BLOCKED_CALL_H

#include "wait_detail.h"

#include <stdbool.h>
#include <stdint.h>

struct blocked_call {
    long number; /* -1: no call; the thread waits for a page of memory, or was stopped */
    uint64_t arguments[6];
    uintptr_t stack_pointer;
    uintptr_t pc; /* address after the system call instruction */
};

/* Parses the text of /proc/PID/task/TID/syscall. Returns false if the thread is running or
 * runnable, or if the text has another form. */
bool blocked_call_parse(const char *text, struct blocked_call *call);

/* Returns the kind of wait that the call makes; WAIT_OTHER: the call has no kind of its own. */
enum wait_kind blocked_call_kind(const struct blocked_call *call);

#endif
