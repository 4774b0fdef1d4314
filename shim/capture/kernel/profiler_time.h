/* Marks code that works for the profiler on the program's threads, so that its time is not
 * attributed to the program.
 *
 * A sampled allocation is recorded with all signals blocked. A timer that expires meanwhile is
 * delivered where the signals are unblocked: in signals_restore() (signals_blocked.h). That
 * function, and the functions that call it for a sample, are marked with PROFILER_TIME and lie in
 * one section. A sample that finds the thread in this section is exported as `[libotelprof]`,
 * without a frame of the program: neither the function that allocated nor any of its callers is
 * charged with it.
 */
#ifndef OTELPROF_PROFILER_TIME_H
#define OTELPROF_PROFILER_TIME_H

#include <stdbool.h>
#include <stdint.h>

#define PROFILER_TIME __attribute__((noinline, section("otelprof_profiler_time")))

/* The linker defines these names for the ends of a section whose name is a C identifier. */
extern const char profiler_time_start[] __asm__("__start_otelprof_profiler_time")
    __attribute__((visibility("hidden")));
extern const char profiler_time_end[] __asm__("__stop_otelprof_profiler_time")
    __attribute__((visibility("hidden")));

/* Returns true if the pc is in that section. Context: any. Async-signal-safe: yes. */
static inline bool is_profiler_time(uintptr_t pc) {
    return pc >= (uintptr_t)profiler_time_start && pc < (uintptr_t)profiler_time_end;
}

#endif
