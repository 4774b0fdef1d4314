/* The system call that a thread is blocked in, as the kernel tells it without waking the thread:
 * /proc/PID/task/TID/syscall (proc(5)), which a process may always read of its own threads.
 *
 * Context: any.
 */
#ifndef OTELPROF_BLOCKED_CALL_H
#define OTELPROF_BLOCKED_CALL_H

#include "wait_detail.h"

#include <stdbool.h>
#include <stdint.h>

struct blocked_call {
    long number; /* -1: none; the thread waits for a page of memory, or was stopped */
    uint64_t arguments[6];
    uintptr_t stack_pointer;
    uintptr_t pc; /* behind the instruction */
};

/* Of the text of that file. false: the thread runs, or is ready to. */
bool blocked_call_parse(const char *text, struct blocked_call *call);

/* What a thread in that call waits for. */
enum wait_kind blocked_call_kind(const struct blocked_call *call);

#endif
