/* Whether the end of this process is one that nobody in it sees.
 *
 * Go's runtime ends the process by a system call of its own, behind libc: there is no last export.
 * Such programs export more often while they are young (schedule.h). They are recognised by the
 * note that Go's linker leaves in every executable; a library that is written in Go ends nothing.
 * Context: flush.
 */
#ifndef OTELPROF_UNSEEN_END_H
#define OTELPROF_UNSEEN_END_H

#include <stdbool.h>

bool unseen_end_is_to_come(void);

#endif
