/* How a part of the process's own memory may be used, as the kernel says it: /proc/PID/maps.
 */
#ifndef OTELPROF_MAPPING_PROTECTION_H
#define OTELPROF_MAPPING_PROTECTION_H

#include <stdint.h>

/* PROT_* bits of the private memory from `start` to `end`. -1: it is not all of one mapping, is
 * shared with others, or it cannot be known. Context: the helper. */
int mapping_protection(uintptr_t start, uintptr_t end);

#endif
