/* From run-time addresses to the dictionary's mappings, locations and stacks, each address looked
 * up once per export.
 *
 * A location's address and its mapping's range are in the address space of the ELF file (run-time
 * address less load bias), so that a receiver can resolve them with the file alone. An address that
 * lies in no module (JIT code) keeps its run-time value, and is named as its compiler has reported,
 * or "[anonymous]". A frame that is no address has a location without address or mapping, with its
 * type and names.
 * Context: flush.
 */
#ifndef OTELPROF_DICTIONARY_H
#define OTELPROF_DICTIONARY_H

#include "harvest.h"
#include "otlp_writer.h"
#include "symbolize/symbolize.h"

struct dictionary;

/* NULL: no memory. Uses the modules of the last harvest. */
struct dictionary *dictionary_open(struct otlp_writer *writer, const struct capture_api *api,
                                   struct symbolizer *symbolizer);
void dictionary_close(struct dictionary *dictionary);

/* The stack of these frames, leaf first; its index in the request's dictionary. */
int32_t dictionary_stack(struct dictionary *dictionary, const uint64_t *frames, uint32_t count,
                         uint64_t interval);

/* A stack of one location that is nothing but a name. */
int32_t dictionary_named_stack(struct dictionary *dictionary, const char *name);

#endif
