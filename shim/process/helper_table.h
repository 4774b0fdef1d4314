/* Checks that the helper's table of descriptors is still its own.
 *
 * The helper keeps descriptors while it sleeps: sockets, files of threads in /proc. Its table may
 * be replaced meanwhile: CRIU saves the main thread's table only, and a restored process has that
 * one for all threads. From then on the numbers mean files of the program. So after each sleep, and
 * each time that it enters the quiesce lock, the helper checks its table before it uses any
 * descriptor. If it is not its own, it makes a table again, in which the old numbers mean nothing,
 * and ends for good, with a warning: its connections, and what it knew of the kernel's threads, are
 * gone. Context: the helper.
 */
#ifndef OTELPROF_HELPER_TABLE_H
#define OTELPROF_HELPER_TABLE_H

#include <stdbool.h>

/* Returns false if the table is not the helper's own any more; then the helper has been requested
 * to end, and old numbers are harmless. If the kernel refuses another table, the thread ends here.
 * One system call. Called without the helper's holding a lock of libc's. */
bool helper_table_holds(void);

#endif
