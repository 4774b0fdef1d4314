/* Visits the variables that exec gave to a process, which the kernel shows in /proc/PID/environ.
 *
 * The kernel has them as they were before any code of the process ran, whereas a library that is
 * initialised before the profiler may have removed some from `environ` (as a preload does that
 * hides itself). A title that the program writes over its variables (setproctitle) replaces them
 * here, too.
 */
#ifndef OTELPROF_GIVEN_VARIABLES_H
#define OTELPROF_GIVEN_VARIABLES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* largest part of a variable that is passed to the visitor, its final 0 included */
enum { GIVEN_MOST = 4096 };

/* Receives one variable. `text`: "NAME=value", cut at GIVEN_MOST; `hash` covers the whole text. */
typedef void given_visit(void *arg, const char *text, uint64_t hash);

/* Visits each variable in turn. Returns false if they cannot be read (no /proc, another user's
 * process, no descriptor). Uses one descriptor of the calling thread's table meanwhile. Context:
 * calm | flush.
 */
bool given_variables(pid_t pid, given_visit *visit, void *arg);

#endif
