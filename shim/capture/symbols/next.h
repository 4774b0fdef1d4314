/* The functions behind ours: what the program would have called without us.
 *
 * Resolved once (next_symbol.h) by a look-up which respects every other preload. The allocator's
 * are in allocation_path.h.
 */
#ifndef OTELPROF_NEXT_H
#define OTELPROF_NEXT_H

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/time.h>
#include <threads.h>

/* Those that hooked.def keeps here. libc's syscall() and clone() as they are called: with all that
 * they may take, whatever the call has. */
struct next_calls {
#define IN_TABLE(result, name, parameters) result(*name) parameters;
#include "../../hooks/hooked.def"
};

/* The calls, resolved by whoever comes first: the constructor where the process is profiled, the
 * first hook that is called elsewhere. Context: any. Async-signal-safe: yes. */
const struct next_calls *next_calls(void);

/* As next_calls(), for dlclose and what creates threads: glibc before 2.34 has them in libraries
 * that may have come since, and they are looked for again where they were not found. */
const struct next_calls *next_library_calls(void);

/* sigaction() as the C library has it. Async-signal-safe: yes. */
static inline int next_sigaction(int number, const struct sigaction *action,
                                 struct sigaction *old) {
    return next_calls()->sigaction(number, action, old);
}

#endif
