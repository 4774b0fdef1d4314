/* Checks that the helper's table of descriptors is still its own.
 *
 * The helper keeps descriptors while it sleeps: sockets, files of threads in /proc. The helper's
 * table may be replaced during a sleep: CRIU saves only the main thread's table, and in a restored
 * process all threads share that table. Then the helper's descriptors would mean files of the
 * program. So after each sleep, and each time that it enters the quiesce lock, the helper checks
 * its table before it uses any descriptor. If the table is not its own, the helper makes a new one,
 * in which the old descriptors are not open, and ends for ever, with a warning: its connections and
 * its files of threads are lost. Context: the helper.
 */
#ifndef OTELPROF_HELPER_TABLE_H
#define OTELPROF_HELPER_TABLE_H

#include <stdbool.h>

/* Returns true if the table is the helper's own. If it is not, then the helper was requested to
 * end, and its old descriptors are harmless. If the kernel refuses a new table, the thread ends
 * here. Makes one system call. The helper must hold no lock of libc's. */
bool helper_table_holds(void);

#endif
