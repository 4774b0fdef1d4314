/* A table of descriptors for the helper thread alone.
 *
 * A program may expect the lowest free number (close(0), open()), close every descriptor, or hand
 * them all to a child, at any moment: what the helper has open must not be among them, however
 * shortly. Linux keeps the table per thread if asked to. The helper's starts empty, so that no file
 * or pipe of the program is held open by it; what it needs of the program's (stderr) it borrows.
 * Only behind a seccomp filter, where nothing can be borrowed, stderr is kept if it is a regular
 * file or the journal's.
 */
#ifndef OTELPROF_DESCRIPTORS_H
#define OTELPROF_DESCRIPTORS_H

#include <stdbool.h>

/* Gives the calling thread an empty table of its own, with 0, 1 and 2 taken by something that
 * nothing can be read from or written to. false: the kernel (before 5.9) or a sandbox refused, and
 * the thread still shares the process's. Context: calm, on the helper thread. */
bool descriptors_separate(void);

/* A duplicate, in the calling thread's table, of descriptor `number` (1 or 2) in that of the
 * process's main thread, to write to; the caller closes it. Sandboxes refuse that, or kill for it:
 * where there is one, a file that stands in /proc is opened again, but none with a position that
 * the program goes on from, and no socket (ENXIO), but for a stderr that was kept. -errno: there is
 * none (EBADF), the main thread has ended, or it was refused. Context: calm. */
int descriptors_borrow(int number);

/* Puts the process's descriptor `number` (1 or 2) at the same number of the calling thread's own
 * table, until descriptors_drop(). 0, or -errno as descriptors_borrow(). Context: calm. */
int descriptors_take(int number);
void descriptors_drop(int number);

#endif
