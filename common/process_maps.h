/* The mappings of the own process, as /proc/PID/maps lists them. Without libc's stdio and strtoul:
 * what a start looks up by name costs each program. */
#ifndef OTELPROF_PROCESS_MAPS_H
#define OTELPROF_PROCESS_MAPS_H

#include <stdbool.h>
#include <stdint.h>

/* A line of the file: its range, and what follows, " rw-p ...", of which the first 130 bytes or so
 * are kept. */
struct process_mapping {
    uintptr_t start;
    uintptr_t end;
    const char *rest;
};

/* Calls `visit` for each until it returns true: then true, as opposed to the end of the file, or
 * none that can be opened. Context: as process_file_open(). */
bool process_maps_visit(bool (*visit)(void *arg, const struct process_mapping *mapping), void *arg);

#endif
