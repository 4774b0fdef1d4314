/* What the program calls of its storages of contexts, with us in front: RuntimeContextStorage's
 * Attach() and Detach().
 *
 * Each storage that is followed has a number, and functions of its own: they go on to what stood in
 * its table before.
 */
#ifndef OTELPROF_STORAGE_CALLS_H
#define OTELPROF_STORAGE_CALLS_H

#include <stdint.h>

/* Functions of the storage's table, by their places in it. */
enum { STORAGE_GET_CURRENT, STORAGE_ATTACH, STORAGE_DETACH, STORAGE_FUNCTIONS = 5 };

/* The storage's own functions, and its ABI: before the program can call ours. Context: the helper.
 */
void storage_calls_follow(unsigned storage, const uintptr_t *functions, unsigned abi);

/* What is to stand in the table instead. Context: any. */
uintptr_t storage_calls_attach(unsigned storage);
uintptr_t storage_calls_detach(unsigned storage);

#endif
