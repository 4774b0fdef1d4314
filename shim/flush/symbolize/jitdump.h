/* Reads names and lines of generated code from a jitdump file: jit-PID.dump, which a runtime writes
 * for `perf inject`, in a folder of its choice (tools/perf/Documentation/jitdump-specification.txt
 * of Linux).
 *
 * A runtime that writes such a file maps its first page as code, so that perf finds its path; the
 * profiler finds the path in /proc in the same way. The file is a list of records. Some report that
 * code was loaded, with its name and its bytes, after a record of its lines; others that code was
 * moved. As for a perf map, only new records are read, and of these only the heads: names and lines
 * are read on request. The file must be the one that is mapped, and belong to root or the process's
 * user. Context: flush.
 */
#ifndef OTELPROF_JITDUMP_H
#define OTELPROF_JITDUMP_H

#include "code_map.h"
#include "generated_name.h"

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum jitdump_result {
    JITDUMP_NONE,
    JITDUMP_READ,
    JITDUMP_RESTARTED,
    JITDUMP_EXCESS, /* as PERF_MAP_EXCESS in enum perf_map_result */
};

struct jitdump_code;

/* Holds the state of one file; jitdump_init() initialises it. */
struct jitdump {
    int file; /* descriptor; -1: closed */
    dev_t device;
    ino_t inode; /* 0: no file was found yet */
    char path[PATH_MAX];
    uint64_t at; /* offset up to which the file was read */
    bool full;
    uint64_t lines_at; /* offset of the last record of lines */
    uint64_t lines_of; /* address of the code that these lines belong to */
    struct jitdump_code *code;
    size_t code_count;
    size_t code_room;
    struct code_map ranges; /* values: indices in `code` */
};

void jitdump_init(struct jitdump *dump);

/* Searches this process's mappings for the file of process id `pid`, the process's own, and
 * remembers it in place of an earlier one. Returns false, without a change, if there is none. */
bool jitdump_scan(struct jitdump *dump, pid_t pid);

/* Opens the file that was found and reads its new records; it stays open until
 * jitdump_close_file(). */
enum jitdump_result jitdump_read(struct jitdump *dump);

/* Reads the file of a descriptor, of which it takes ownership, as jitdump_read() does. */
enum jitdump_result jitdump_read_file(struct jitdump *dump, int file);

/* jitdump_find() finds the number of the piece of code at `address`; it returns false if none is
 * known. jitdump_name() reads the name of that piece; it returns false if the name cannot be
 * read. */
bool jitdump_find(struct jitdump *dump, uint64_t address, uint32_t *number);
bool jitdump_name(const struct jitdump *dump, uint32_t number,
                  char name[static MAX_GENERATED_NAME]);

/* Returns the source line of `address` in the piece, and its file; 0 and "" if it is not known. */
int jitdump_line(const struct jitdump *dump, uint32_t number, uint64_t address,
                 char file[static PATH_MAX]);

void jitdump_close_file(struct jitdump *dump);
void jitdump_close(struct jitdump *dump);

#endif
