/* Reads the mappings of this process, as /proc/PID/maps lists them. Avoids libc's stdio and
 * strtoul: symbols that the loader must look up cost time in each program. */
#ifndef OTELPROF_PROCESS_MAPS_H
#define OTELPROF_PROCESS_MAPS_H

#include <stdbool.h>
#include <stdint.h>

/* A line of the file: its range, and its rest, " rw-p ...", of which about the first 130 bytes are
 * kept. */
struct process_mapping {
    uint64_t start;
    uint64_t end;
    const char *rest;
};

/* Calls `visit` for each mapping until it returns true, and then returns true. false: the end of
 * the file, or it cannot be opened. Context: as process_file_open(). */
bool process_maps_visit(bool (*visit)(void *arg, const struct process_mapping *mapping), void *arg);

#endif
