/* Resolves the next functions, which the program would have called without the profiler.
 *
 * Resolved once (next_symbol.h) by a lookup which respects every other preload. The allocator's are
 * in allocation_path.h. */
#ifndef OTELPROF_NEXT_H
#define OTELPROF_NEXT_H

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/time.h>
#include <threads.h>

/* The functions that hooked.def stores here. libc's syscall() and clone() have the types of their
 * calls: with all arguments that they may take, whatever the call has. */
struct next_calls {
#define IN_TABLE(result, name, parameters) result(*name) parameters;
#include "../../hooks/hooked.def"
};

/* Returns the calls, resolved by the first caller: the constructor where the process is profiled,
 * the first hook that is called elsewhere. Context: any. Async-signal-safe: yes. */
const struct next_calls *next_calls(void);

/* Returns the same as next_calls(), for dlclose and functions that create threads: glibc before
 * 2.34 has them in libraries that may have been loaded since, and functions that were not found
 * before are searched again. */
const struct next_calls *next_library_calls(void);

/* The C library's sigaction(). Async-signal-safe: yes. */
static inline int next_sigaction(int number, const struct sigaction *action,
                                 struct sigaction *old) {
    return next_calls()->sigaction(number, action, old);
}

#endif
