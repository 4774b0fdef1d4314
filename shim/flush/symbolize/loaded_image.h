/* Makes a small ELF file of a loaded object's parts in memory, its dynamic symbols and its build
 * id. It replaces the object's own file where that is out of reach: deleted or replaced by an
 * upgrade of a running program, or left behind by chroot.
 *
 * Every byte is read with safe_read(), for the object may be unloaded meanwhile. Another object
 * could take its place; so an image is made only of an object with a build id, which must still be
 * there after everything else has been read.
 * Context: flush.
 */
#ifndef OTELPROF_LOADED_IMAGE_H
#define OTELPROF_LOADED_IMAGE_H

#include "harvest.h"

#include <stdbool.h>
#include <stddef.h>

/* `*bytes` is malloc'ed and the caller's. false: there is nothing to be read, or no memory; both
 * are then unchanged. */
bool loaded_image_make(const struct harvest_module *module, void **bytes, size_t *size);

/* Returns the run-time address of the object's export `name`, by its GNU hash table alone. 0: it
 * has no such export. */
uint64_t loaded_image_symbol(const struct harvest_module *module, const char *name);

#endif
