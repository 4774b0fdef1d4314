/* Withdrawing an export of our own while the process runs.
 *
 * Some functions must be exported before anybody knows whether they are needed: objects that are
 * there at the start are bound before our constructor runs. One that turns out not to be needed is
 * taken out of our dynamic symbol table, so that what is loaded, or bound, later finds what it
 * would have found without us. Its entry becomes that of no symbol (all zero, as the first one is):
 * tools read these tables themselves, by the hash table or from end to end, and some of them look
 * at the name alone; a name that stood there with no value would be called at address 0 of ours.
 * What is bound already stays bound, so the function must still pass the call on.
 */
#ifndef OTELPROF_OWN_EXPORTS_H
#define OTELPROF_OWN_EXPORTS_H

#include "object_symbols.h"

#include <stdbool.h>
#include <stddef.h>

/* Withdraws those of `count` symbols, told by their names, that we export; others are passed over.
 * The table's pages are opened and closed once for all of them: every process pays for it. false:
 * its memory cannot be written. Context: calm, single-threaded, at start. */
bool own_exports_withdraw(struct symbol *symbols, size_t count);

#endif
