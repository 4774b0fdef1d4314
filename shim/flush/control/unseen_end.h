/* Detects programs that exit without libc, so that no exit handler runs.
 *
 * Go's runtime exits by a system call of its own: there is no last export. Such programs export
 * more often while they are young (schedule.h). They are recognised by the note that Go's linker
 * puts into every executable; a library written in Go does not count, because it does not end the
 * process.
 * Context: flush.
 */
#ifndef OTELPROF_UNSEEN_END_H
#define OTELPROF_UNSEEN_END_H

#include <stdbool.h>

/* Returns true if this process runs such a program. */
bool exits_without_libc(void);

#endif
