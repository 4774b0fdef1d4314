/* Hooks the program's calls of its storages of contexts: RuntimeContextStorage's Attach() and
 * Detach().
 *
 * Each followed storage has a number and hooks of its own, which forward to the functions that its
 * table had before. */
#ifndef OTELPROF_STORAGE_CALLS_H
#define OTELPROF_STORAGE_CALLS_H

#include <stdint.h>

/* Lists the functions of the storage's table, by their indices. */
enum { STORAGE_GET_CURRENT, STORAGE_ATTACH, STORAGE_DETACH, STORAGE_FUNCTIONS = 5 };

/* Stores the storage's own functions, and its ABI, before the program can call ours. Context: the
 * helper. */
void storage_calls_follow(unsigned storage, const uintptr_t *functions, unsigned abi);

/* Return the functions to put into the table instead. Context: any. */
uintptr_t storage_calls_attach(unsigned storage);
uintptr_t storage_calls_detach(unsigned storage);

#endif
