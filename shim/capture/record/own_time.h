/* Which code on the program's threads works for the profiler, so that its time is not the
 * program's.
 *
 * A sampled allocation is recorded with all signals blocked. A timer that expires meanwhile is
 * delivered where they are let through again: in the function that blocked them, which is marked by
 * OWN_TIME, makes its system calls itself, and lies with the others of its kind in one section. A
 * sample that finds the thread there is exported as `[libotelprof]`, without a frame of the
 * program's: neither the function that allocated nor any of its callers is charged with it.
 */
#ifndef OTELPROF_OWN_TIME_H
#define OTELPROF_OWN_TIME_H

#include <stdbool.h>
#include <stdint.h>

#define OWN_TIME __attribute__((noinline, section("otelprof_own_time")))

/* The linker names the ends of a section whose name is a C identifier. */
extern const char own_time_start[] __asm__("__start_otelprof_own_time")
    __attribute__((visibility("hidden")));
extern const char own_time_end[] __asm__("__stop_otelprof_own_time")
    __attribute__((visibility("hidden")));

/* Context: any. Async-signal-safe: yes. */
static inline bool is_own_time(uintptr_t pc) {
    return pc >= (uintptr_t)own_time_start && pc < (uintptr_t)own_time_end;
}

#endif
