/* Names of threads that held a lock which others waited for, and have ended.
 *
 * A sample says who held its lock by the thread's id, and the exporter asks the kernel for the
 * thread's name when the sample is exported. A thread that has ended by then has none, and may have
 * recorded nothing of its own that would keep it. So who samples a wait writes the holder's id down
 * here, and a thread whose id is here leaves its name when it ends. One place for each id modulo
 * the size: a later holder takes an earlier one's place, whose name is then unknown.
 */
#ifndef OTELPROF_HOLDER_NAMES_H
#define OTELPROF_HOLDER_NAMES_H

#include "record/thread_table.h"

#include <stdbool.h>
#include <stdint.h>

/* A sample names `tid` as the holder; 0: nobody. Context: any. Async-signal-safe: yes. */
void holder_names_want(uint32_t tid);

/* The calling thread, `tid`, ends. Context: the thread itself, calm. */
void holder_names_end(uint32_t tid);

/* The name that the thread had at its end; false: not known. Context: the helper. */
bool holder_names_read(uint32_t tid, char name[static THREAD_NAME_BYTES]);

#endif
