/* The crash guard: whoever keeps crashing under a preload that root has set for the whole host
 * (/etc/ld.so.preload) is left alone. An executable that did not get through its first 30 s in
 * three starts within ten minutes is not profiled for an hour; the process that finds out says so.
 *
 * There is one record for each user (crash_record.h), a file in CRASH_GUARD_FOLDER, which `otelprof
 * host enable` makes. A start writes itself into it. It is settled when the process has lived for
 * 30 s, ends by itself, starts another program in its place (exec), or is not profiled any more.
 * What ends without passing us has failed: by a signal that no handler of ours or the program's
 * meets, SIGKILL among them, or by an instruction of the program's own; and what calls abort().
 * Whose fault that was nobody asks.
 *
 * To settle must be possible on any thread, in a handler, and after the process has changed its
 * user, its root or its descriptors. So no descriptor is kept, but a shared mapping of the place in
 * the file, into which the kernel writes the time (clock_gettime(2)): where the file was cut short
 * the call fails, and a store would end the process.
 *
 * Without the folder, or where it cannot be written, there is no guard, and the process is
 * profiled. Where another user's file has the record's name the process is left alone.
 */
#ifndef OTELPROF_CRASH_GUARD_H
#define OTELPROF_CRASH_GUARD_H

#include "log.h"

#include <stdbool.h>
#include <stdint.h>

#define CRASH_GUARD_FOLDER "/run/opentelemetry/otelprof/crash"

/* Whether this process may be profiled, which is then its start. `host_wide`: LD_PRELOAD does not
 * name us; elsewhere there is no guard. At most two descriptors at a time; none is left.
 * Context: calm, single-threaded, once. */
bool crash_guard_admits(bool host_wide, const struct log *log);

/* The start is settled: one system call, the first time. Not in a child, whatever made it.
 * Context: any. Async-signal-safe: yes; errno is preserved. */
void crash_guard_settle(void);

/* In a forked child, which is no start. Async-signal-safe: yes. */
void crash_guard_after_fork(void);

/* When the process is old enough to be settled, in CLOCK_MONOTONIC; UINT64_MAX: it is. Then the
 * helper does so. Context: the helper. */
uint64_t crash_guard_next_look(void);
void crash_guard_look(void);

#endif
