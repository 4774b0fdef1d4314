/* Hooks the program's calls of its storages of contexts: RuntimeContextStorage's Attach(),
 * Detach(), and GetCurrent() until it has returned a context.
 *
 * Each followed storage has a number and hooks of its own, which forward to the functions that its
 * table had before.
 *
 * A class of that name need not be the API's: a fork's, or a later version's, may have other
 * parameters and results. So each call is forwarded with all its registers, and its arguments are
 * used only if they are of the API's kind. Until a few calls have proven that, the kernel checks
 * the memory to which the arguments point before it is read. A storage with calls of another kind
 * is not followed any more. */
#ifndef OTELPROF_STORAGE_CALLS_H
#define OTELPROF_STORAGE_CALLS_H

#include <stdbool.h>
#include <stdint.h>

/* Lists the functions of the storage's table, by their indices. */
enum { STORAGE_GET_CURRENT, STORAGE_ATTACH, STORAGE_DETACH, STORAGE_FUNCTIONS = 5 };

/* Stores the storage's own functions, and its ABI, before the program can call ours. Context: the
 * helper. */
void storage_calls_follow(unsigned storage, const uintptr_t *functions, unsigned abi);

/* Return the functions to put into the table instead. Context: any. */
uintptr_t storage_calls_get_current(unsigned storage);
uintptr_t storage_calls_attach(unsigned storage);
uintptr_t storage_calls_detach(unsigned storage);

/* Returns whether the storage's calls have turned out not to be the API's. Context: any. */
bool storage_calls_are_refused(unsigned storage);

/* Returns whether the table has the three functions that it had before it was followed. Context:
 * the helper. */
bool storage_calls_are_bypassed(unsigned storage, const uintptr_t *functions);

#endif
