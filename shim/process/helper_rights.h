/* What the helper may, compared with what the program may.
 *
 * Linux has ids, capabilities and filters for each thread. The helper needs next to nothing of
 * them, and must never have what the program has given up: somebody who comes to run code in this
 * process could use it. What it keeps of capabilities: CAP_SETUID, CAP_SETGID   libc's setuid() and
 * its like make every thread do the same, and end the process where one may not; CAP_IPC_LOCK
 * memory counts for all threads: in a program that locks its memory (mlockall) the helper would get
 * none.
 */
#ifndef OTELPROF_HELPER_RIGHTS_H
#define OTELPROF_HELPER_RIGHTS_H

#include <stdbool.h>

/* --- for the helper --- */

/* Gives up all that is not needed, and what execve could bring back. Behind a seccomp filter, which
 * may kill for capset (SystemCallFilter=~@privileged), capabilities stay what the program's are. */
void helper_rights_drop(void);

/* Drops the capabilities that the main thread has not any more, and takes over its ids: it may have
 * changed them by an instruction of its own, which no hook sees, or by number, which programs do
 * for each request that they serve. false: there is more that cannot be given up, ids that it
 * cannot be again, or filters and namespaces that a program of one thread has put around that one.
 * What /proc does not show holds. */
bool helper_rights_hold(void);

/* --- for the application's threads --- */

/* Whether libc's setuid() and its like may have another outcome on the helper than on the calling
 * thread. Async-signal-safe: yes. */
bool helper_rights_differ(void);

/* Whether the helper could do what the calling thread has given up. Async-signal-safe: yes. */
bool helper_rights_exceed(void);

#endif
