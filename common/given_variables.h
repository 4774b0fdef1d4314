/* Visits the variables that exec gave to a process, which the kernel shows in /proc/PID/environ.
 *
 * They date from before any code of the process ran: libraries that are initialised before the
 * profiler may have removed some from `environ` (a preload that hides itself does). A title that
 * the program wrote over them (setproctitle) replaces them.
 */
#ifndef OTELPROF_GIVEN_VARIABLES_H
#define OTELPROF_GIVEN_VARIABLES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum { GIVEN_MOST = 4096 }; /* bytes of one that are shown, with the 0 at its end */

/* `text`: "NAME=value", cut at GIVEN_MOST; `hash` covers the uncut text. */
typedef void given_visit(void *arg, const char *text, uint64_t hash);

/* Visits each variable in turn. false: they cannot be read (no /proc, another user's process, no
 * descriptor). Uses one descriptor of the calling thread's table meanwhile. Context: calm | flush.
 */
bool given_variables(pid_t pid, given_visit *visit, void *arg);

#endif
