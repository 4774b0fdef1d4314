/* Compares the helper's rights with the program's.
 *
 * Linux keeps ids, capabilities and filters for each thread. The helper needs next to none of them,
 * and must not have any that the program has given up: an attacker that runs code in this process
 * could use them. The helper keeps two kinds of capabilities.
 * CAP_SETUID, CAP_SETGID: libc's setuid() and its like make every thread do the same, and end the
 * process if a thread may not.
 * CAP_IPC_LOCK: locked memory counts for all threads, so in a program that locks its memory
 * (mlockall) the helper would get no memory.
 */
#ifndef OTELPROF_HELPER_RIGHTS_H
#define OTELPROF_HELPER_RIGHTS_H

#include <stdbool.h>

/* --- for the helper --- */

/* Gives up all rights that the helper does not need, and all rights that execve could bring back.
 * Under a seccomp filter, which may kill for capset (SystemCallFilter=~@privileged), the helper
 * keeps the program's capabilities. */
void helper_rights_drop(void);

/* Drops the capabilities that the main thread has given up, and takes over its ids. The program may
 * have changed them by an instruction of its own, which no hook sees, or by system call number, as
 * some programs do for each request that they serve. Returns false if something remains that cannot
 * be given up: ids that the helper cannot take, or filters and namespaces that a single-threaded
 * program has put around its thread. Values that /proc does not show count as equal. */
bool helper_rights_hold(void);

/* --- for the application's threads --- */

/* Returns true if libc's setuid() and its like may have another outcome on the helper than on the
 * calling thread. Async-signal-safe: yes. */
bool helper_rights_differ(void);

/* Returns true if the helper has a right that the calling thread has given up. Async-signal-safe:
 * yes. */
bool helper_rights_exceed(void);

#endif
