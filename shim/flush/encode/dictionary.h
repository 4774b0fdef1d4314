/* Converts run-time addresses to the dictionary's mappings, locations and stacks. Each address is
 * looked up once per export.
 *
 * A location's address and its mapping's range are in the address space of the ELF file (run-time
 * address less load bias), so that a receiver can resolve them with the file alone. An address in
 * no module (JIT code) keeps its run-time value, and has the name that its compiler has reported,
 * or "[anonymous]". A frame that is not an address gets a location with type and names, without
 * address or mapping. Context: flush.
 */
#ifndef OTELPROF_DICTIONARY_H
#define OTELPROF_DICTIONARY_H

#include "harvest.h"
#include "otlp_writer.h"
#include "symbolize/symbolize.h"

struct dictionary;

/* Opens a dictionary, which uses the modules of the last harvest. Returns NULL without memory. */
struct dictionary *dictionary_open(struct otlp_writer *writer, const struct capture_api *api,
                                   struct symbolizer *symbolizer);
void dictionary_close(struct dictionary *dictionary);

/* Returns the index of the stack of these frames, leaf first, in the request's dictionary. Frames
 * beyond 1024 are left out; without a frame the stack is "[unknown]". `interval`: as in
 * harvest_sample. */
int32_t dictionary_stack(struct dictionary *dictionary, const uint64_t *frames, uint32_t count,
                         uint64_t interval);

/* Returns the index of a stack of one location that has only a name. */
int32_t dictionary_named_stack(struct dictionary *dictionary, const char *name);

#endif
