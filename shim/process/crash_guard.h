/* The crash guard stops profiling programs that keep crashing under a preload that root has set for
 * the whole host (/etc/ld.so.preload). An executable whose first 30 s failed in three starts within
 * ten minutes is not profiled for an hour; the process that detects this logs it.
 *
 * Each user has one record (crash_record.h), a file in CRASH_GUARD_FOLDER, which `otelprof host
 * enable` makes. A process enters its start in that file. The process marks the start as completed
 * when it has lived for 30 s, ends by itself, starts another program in its place (exec), or is not
 * profiled any more. An end that the profiler does not see is a failure: by a signal that no
 * handler gets (SIGKILL, for example), by a system call that the program makes by an instruction,
 * or by abort(). The cause is not examined.
 *
 * A start can be marked on any thread, in a handler, and after the process has changed its user,
 * its root or its descriptors. So the guard keeps a shared mapping of the entry, not a descriptor.
 * The kernel writes the time into the mapping (clock_gettime(2)): if the file was truncated this
 * call fails, whereas a store would end the process.
 *
 * If the folder is missing or cannot be written, there is no guard, and the process is profiled. If
 * another user's file has the record's name, the process is not profiled.
 */
#ifndef OTELPROF_CRASH_GUARD_H
#define OTELPROF_CRASH_GUARD_H

#include "log.h"

#include <stdbool.h>
#include <stdint.h>

#define CRASH_GUARD_FOLDER "/run/opentelemetry/otelprof/crash"

/* Enters this start. Returns true if the process may be profiled. `host_wide`: LD_PRELOAD does not
 * name the profiler; otherwise there is no guard. Opens at most two descriptors at a time, and
 * leaves none open. Context: calm, single-threaded, once. */
bool crash_guard_admits(bool host_wide, const struct log *log);

/* Marks the start as completed, unless that was done: makes two system calls, getpid for the check
 * that this is no child, where the function does nothing. Context: any. Async-signal-safe: yes;
 * errno is preserved. */
void crash_guard_mark_started(void);

/* Stops the guard in a forked child, which is no start. Async-signal-safe: yes. */
void crash_guard_after_fork(void);

/* Returns when the helper must call crash_guard_poll(), which marks a start that is old enough.
 * CLOCK_MONOTONIC; UINT64_MAX: never. Context: the helper. */
uint64_t crash_guard_next_poll(void);
void crash_guard_poll(void);

#endif
