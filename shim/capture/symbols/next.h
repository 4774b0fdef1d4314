/* Resolves the next functions, which the program would have called without the profiler.
 *
 * The lookup (next_symbol.h) respects every other preload, and runs once. The allocator's functions
 * are in allocation_path.h. */
#ifndef OTELPROF_NEXT_H
#define OTELPROF_NEXT_H

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/time.h>
#include <threads.h>

/* Holds the functions that hooked.def stores here. syscall() and clone() are declared with all
 * arguments that they may take. */
struct next_calls {
#define IN_TABLE(result, name, parameters) result(*name) parameters;
#include "../../hooks/hooked.def"
};

/* Returns the calls, which the first caller resolves: our constructor if the process is profiled,
 * otherwise the first hook that is called. Context: any. Async-signal-safe: yes. */
const struct next_calls *next_calls(void);

/* Returns next_calls(), after it has searched again for functions that were not found before. Hooks
 * of dlclose and of functions that create threads call it: glibc before 2.34 has these in libraries
 * that may have been loaded since. */
const struct next_calls *next_library_calls(void);

/* Calls the C library's sigaction(). Async-signal-safe: yes. */
static inline int next_sigaction(int number, const struct sigaction *action,
                                 struct sigaction *old) {
    return next_calls()->sigaction(number, action, old);
}

#endif
