/* Keeps the names of ended threads that held a lock while other threads waited for it.
 *
 * A sample identifies the holder of its lock by thread id, and the exporter reads the thread's name
 * from the kernel when it exports the sample. If the thread has ended by then, the kernel has no
 * name, and the thread may have no record with its name. So the sampler of a wait notes the
 * holder's id here, and a thread whose id is noted stores its name here when it ends. There is one
 * place for each id modulo the size: a later holder replaces an earlier one, whose name is then
 * unknown.
 */
#ifndef OTELPROF_HOLDER_NAMES_H
#define OTELPROF_HOLDER_NAMES_H

#include "record/thread_table.h"

#include <stdbool.h>
#include <stdint.h>

/* Notes that a sample has `tid` as the holder; 0: none. Context: any. Async-signal-safe: yes. */
void holder_names_want(uint32_t tid);

/* Stores the name of the calling thread, `tid`, which is about to end. Context: the thread itself,
 * calm. */
void holder_names_end(uint32_t tid);

/* Copies the name that the thread had at its end. Returns false if it is not known. Context: the
 * helper. */
bool holder_names_read(uint32_t tid, char name[static THREAD_NAME_BYTES]);

#endif
