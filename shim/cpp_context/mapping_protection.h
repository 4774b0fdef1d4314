/* Reads the protection of a part of the process's own memory from the kernel: /proc/PID/maps. */
#ifndef OTELPROF_MAPPING_PROTECTION_H
#define OTELPROF_MAPPING_PROTECTION_H

#include <stdint.h>

/* Returns PROT_* bits of the private memory from `start` to `end`. -1: it spans several mappings,
 * is shared with others, or its protection is unknown. Context: the helper. */
int mapping_protection(uintptr_t start, uintptr_t end);

#endif
