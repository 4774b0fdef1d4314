/* Makes a descriptor table for the helper thread alone.
 *
 * At any moment, a program may expect the lowest free number (close(0), open()), close every
 * descriptor, or pass all of them to a child. The helper's descriptors must never be among the
 * program's, not even for a moment. Linux allows a table for each thread. The helper's table starts
 * empty, so that it keeps no file or pipe of the program open; the helper borrows the descriptors
 * that it needs (stderr). Only behind a seccomp filter, where it cannot borrow, the table keeps
 * stderr, if that is a regular file or the journal's.
 */
#ifndef OTELPROF_DESCRIPTORS_H
#define OTELPROF_DESCRIPTORS_H

#include "file_identity.h"

#include <stdbool.h>

/* States the usual number of the file that marks a table. */
enum { DESCRIPTORS_FIRST_MARKER = 3 };

/* Identifies a table by a file that is in no other table. */
struct descriptor_table {
    int marker;                  /* the descriptor of that file */
    struct file_identity marked; /* its identity; unknown: the table is the process's */
};

/* Gives the calling thread an empty table of its own, in which 0, 1 and 2 are taken by descriptors
 * that can be neither read nor written; 2 may be a stderr that is kept. Returns false if the kernel
 * (before 5.9) or a sandbox refused: then the thread still shares the process's table. Context:
 * calm, on the helper thread. */
bool descriptors_separate(struct descriptor_table *table);

/* Returns false if the calling thread no longer has the table that it was given: checkpoint and
 * restore (CRIU) gives all threads of a process one table. Then none of the thread's descriptors is
 * a file of its own. Makes one system call. Context: any, on the same thread. */
bool descriptors_are_own(const struct descriptor_table *table);

/* Duplicates descriptor `number` (1 or 2) of the process's main thread into the calling thread's
 * table, for writing; the caller closes the duplicate. Sandboxes refuse the system call for that,
 * or kill the process for it. So behind a filter, or if the call is refused, this function opens
 * the file again by its name in /proc. It then refuses a file with a position that the program
 * continues from (EPERM), and sockets (ENXIO), except a stderr that was kept. Returns the
 * duplicate, or -errno, for example if the descriptor is not open (EBADF), or the main thread has
 * ended. Context: calm. */
int descriptors_borrow(int number);

/* Duplicates the process's descriptor `number` (1 or 2) to the same number in the calling thread's
 * own table, until descriptors_drop(). Returns 0, or the errors of descriptors_borrow(). Context:
 * calm. */
int descriptors_take(int number);
void descriptors_drop(int number);

#endif
