/* Reads the mappings of this process, as /proc/PID/maps lists them. Avoids libc's stdio and
 * strtoul, because each symbol that the loader must look up costs time in every program. */
#ifndef OTELPROF_PROCESS_MAPS_H
#define OTELPROF_PROCESS_MAPS_H

#include <stdbool.h>
#include <stdint.h>

/* Holds a line of the file: its range, and about the first 130 bytes of the rest, " rw-p ...". */
struct process_mapping {
    uint64_t start;
    uint64_t end;
    const char *rest;
};

/* Calls `visit` for each mapping until it returns true, and then returns true. Returns false at the
 * end of the file, or if it cannot be opened. Context: as process_file_open(). */
bool process_maps_visit(bool (*visit)(void *arg, const struct process_mapping *mapping), void *arg);

#endif
