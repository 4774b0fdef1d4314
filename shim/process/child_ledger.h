/* Counts the CPU time of children that is in no profile: DROP_SHORT_CHILD.
 *
 * Many children end before they could have a helper, or run programs that are not profiled. The
 * kernel adds the CPU time of each child that is waited for, and of the children that this child
 * has waited for, to a total of the process (getrusage, RUSAGE_CHILDREN), whichever call waits.
 * From that total the helper subtracts the time that children have exported themselves.
 *
 * The helper learns that time from a ledger, a sealed memfd of the parent's helper: the file that
 * marks its table of descriptors. A forked child inherits the mapping, so that it needs no right to
 * open anything. A child that has called exec searches /proc for its nearest ancestor with a
 * helper, and opens the file there, which needs the same right as a debugger's reading; the child
 * searches at its start, before its first exports, and at its end. Before each harvest a child's
 * helper stores its CPU time, and that of its own children, in one entry. When the child is gone,
 * its parent's helper subtracts the entry and frees it. Until then the kernel's total does not
 * contain the child, either.
 *
 * The kernel adds nothing for children that it reaps by itself (SIGCHLD ignored, SA_NOCLDWAIT).
 * Every number in the ledger is a child's claim: it changes this count, and nothing else.
 * Context: the helper, unless stated.
 */
#ifndef OTELPROF_CHILD_LEDGER_H
#define OTELPROF_CHILD_LEDGER_H

#include "descriptors.h"
#include "harvest.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Notes the CPU time of children that this process had before an exec of its own. Called once,
 * before the other functions. */
void child_ledger_note_start(void);

/* Makes this process's ledger in the file that marks `table`, and opens its ancestor's ledger. */
void child_ledger_begin(const struct descriptor_table *table);

/* Finds children that ended before they had a helper: the harvest has their samples. Counts the
 * lost time, and reports this process's time to the ancestor. Called before each harvest. */
void child_ledger_poll(void);

/* Reports to the ancestor alone. Called when the last export is done, so that the report contains
 * the cost of that export. */
void child_ledger_report(void);

/* Counts the CPU time of such a child as lost: its samples were not exported. */
void child_ledger_count_lost(const struct ended_child *child);

/* Makes the parent's ledger the ancestor's ledger. Context: fork handler. */
void child_ledger_after_fork(void);

#endif
