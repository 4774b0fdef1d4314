/* What of a loaded object is in memory. A small ELF file is made of its dynamic symbols and its
 * build id: it stands in for an object's own file where that is out of reach: deleted or replaced
 * by an upgrade of a running program, or left behind by chroot.
 *
 * Every byte is read with safe_read(), for the object may be unloaded meanwhile. Another object
 * could take its place; so an image is made only of an object with a build id, which must still be
 * there when all else has been read.
 * Context: flush.
 */
#ifndef OTELPROF_LOADED_IMAGE_H
#define OTELPROF_LOADED_IMAGE_H

#include "harvest.h"

#include <stdbool.h>
#include <stddef.h>

/* `*bytes` is malloc'ed and the caller's. false: there is nothing to be read, or no memory; both
 * are as they were. */
bool loaded_image_make(const struct harvest_module *module, void **bytes, size_t *size);

/* The run-time address of what the object exports as `name`, by its GNU hash table alone. 0: it
 * exports none. */
uint64_t loaded_image_symbol(const struct harvest_module *module, const char *name);

#endif
