/* Reads names of generated code from a perf map: /tmp/perf-PID.map, a text that a runtime writes
 * for the Linux tool perf, with a line for each piece of code, "START SIZE name", both in
 * hexadecimal (tools/perf/Documentation/jit-interface.txt of Linux).
 *
 * The file grows while the program runs, and if two lines have the same address the later one is
 * valid. So each export reads the new lines at most once; an incomplete line waits. A file that was
 * replaced, shortened or rewritten is read again from its beginning. Only ranges are kept, 16 bytes
 * a line; a name is read from its line on request, and only if the line still has the address.
 *
 * Every user can write to /tmp. A map is read only if it is a regular file with one name that
 * belongs to root or the process's user, is not writable for all, and is not reached through a
 * link. Only names are taken from it: READ_AT_ONCE bytes are read for an export, at most MAX_FILE
 * in all, and MAX_CODE_RANGES ranges kept. Context: flush.
 */
#ifndef OTELPROF_PERF_MAP_H
#define OTELPROF_PERF_MAP_H

#include "code_map.h"
#include "generated_name.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum perf_map_result {
    PERF_MAP_NONE,      /* there is no file that may be read */
    PERF_MAP_READ,      /* the new lines were read, or as many lines as one export reads */
    PERF_MAP_RESTARTED, /* the file was read from its beginning, so earlier numbers are invalid */
    PERF_MAP_EXCESS     /* the file has more than the profiler ever keeps */
};

enum { PERF_MAP_TAIL = 64 };

/* Holds the state of one map; perf_map_init() initialises it. */
struct perf_map {
    int file; /* descriptor; -1: closed */
    dev_t device;
    ino_t inode;
    uint64_t at;              /* offset up to which the file was read: the end of a line */
    char tail[PERF_MAP_TAIL]; /* the last bytes before that offset */
    size_t tail_size;
    bool full;         /* the limit is reached, so the profiler reads no more lines */
    bool line_changed; /* a line has changed, so the file must be read from its beginning */
    struct code_map ranges;
};

void perf_map_init(struct perf_map *map);

/* Opens the file and reads its new lines; it stays open until perf_map_close_file(). */
enum perf_map_result perf_map_read(struct perf_map *map, const char *path);

/* Reads the file of a descriptor as perf_map_read() does, whichever user owns the file, and takes
 * ownership of the descriptor. */
enum perf_map_result perf_map_read_file(struct perf_map *map, int file);

/* perf_map_find() finds the number of the piece of code at `address`, which is the same for all
 * addresses in that piece; it returns false if there is none. perf_map_name() reads the name of
 * that piece; it returns false if the name cannot be read, or its line has changed. */
bool perf_map_find(struct perf_map *map, uint64_t address, uint32_t *number);
bool perf_map_name(struct perf_map *map, uint64_t address, uint32_t number,
                   char name[static MAX_GENERATED_NAME]);

/* Closes the file; the ranges that were read stay known. */
void perf_map_close_file(struct perf_map *map);

/* Closes the file, and drops all ranges. */
void perf_map_close(struct perf_map *map);

#endif
