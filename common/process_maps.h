/* Reads the mappings of this process, as /proc/thread-self/maps lists them: /proc/PID is the main
 * thread's folder, and its list is empty after the main thread's end. Avoids libc's stdio and
 * strtoul, because each symbol that the loader must look up costs time in every program. */
#ifndef OTELPROF_PROCESS_MAPS_H
#define OTELPROF_PROCESS_MAPS_H

#include <stdbool.h>
#include <stdint.h>

/* Holds a line of the file: its range, and the rest, " rw-p ...". */
struct process_mapping {
    uint64_t start;
    uint64_t end;
    const char *rest; /* "" if the line begins with no range */
};

/* Calls `visit` for each mapping until it returns true, and then returns true. Returns false at the
 * end of the file, or if it cannot be opened. Lines are whole, unless the mapping's name is longer
 * than a path can be. A caller on the flush side asks may_open_by_path() first. Uses 4.5 KiB of
 * stack, and one descriptor until it returns. Context: any. Async-signal-safe: yes. */
bool process_maps_visit(bool (*visit)(void *arg, const struct process_mapping *mapping), void *arg);

/* Does the same for a file that is open, from where it stands; the caller closes it. */
bool process_maps_visit_file(int file,
                             bool (*visit)(void *arg, const struct process_mapping *mapping),
                             void *arg);

/* Parses a line without its end. Pure. */
struct process_mapping process_mapping_parse(const char *line);

/* Returns the name of the mapping, "" if it has none: a path, or the kernel's or the program's word
 * in brackets. Pure. */
const char *process_mapping_name(const struct process_mapping *mapping);

#endif
