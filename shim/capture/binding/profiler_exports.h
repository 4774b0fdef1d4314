/* Removes an export of our own while the process runs.
 *
 * Some functions must be exported before it is known whether they are needed: objects loaded at the
 * start are bound before our constructor runs. An export that turns out not to be needed is removed
 * from our dynamic symbol table, so that objects loaded or bound later find the definition that
 * they would have found without us. Its entry becomes a null entry (all zero, like the first
 * entry). An entry with a name but no value would not do: tools read these tables themselves, some
 * check the name alone, and they would call address 0 of our object. Existing bindings stay, so the
 * function must still forward the call. */
#ifndef OTELPROF_PROFILER_EXPORTS_H
#define OTELPROF_PROFILER_EXPORTS_H

#include "symbols/object_symbols.h"

#include <stdbool.h>
#include <stddef.h>

/* Removes those of `count` symbols, identified by their names, that we export; others are skipped.
 * The table's pages are made writable and read-only again only once, because every process pays for
 * it. Returns false if the table cannot be written. Context: calm, single-threaded, at start.
 */
bool profiler_exports_unexport(struct symbol *symbols, size_t count);

#endif
