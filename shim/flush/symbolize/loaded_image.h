/* Makes a small ELF file in memory from parts of a loaded object: its dynamic symbols and its build
 * id. The profiler uses it if the object's own file cannot be opened: deleted or replaced by an
 * upgrade of a running program, or left behind by chroot.
 *
 * Every byte is read with safe_read(), because the object may be unloaded meanwhile. Another object
 * could take its place, so only an object with a build id is read, and its build id is checked
 * again after the last read. Context: flush.
 */
#ifndef OTELPROF_LOADED_IMAGE_H
#define OTELPROF_LOADED_IMAGE_H

#include "harvest.h"

#include <stdbool.h>
#include <stddef.h>

/* Stores a malloc'ed image in `*bytes`, which the caller frees. Returns false, without a change, if
 * the object cannot be read, or there is no memory. */
bool loaded_image_make(const struct harvest_module *module, void **bytes, size_t *size);

/* Returns the run-time address of the object's export `name`, by its GNU hash table alone. 0: it
 * has no such export. */
uint64_t loaded_image_symbol(const struct harvest_module *module, const char *name);

#endif
