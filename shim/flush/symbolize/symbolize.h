/* Translates addresses to functions, files and lines.
 *
 * Each address is resolved once and remembered, so a cycle pays for new addresses only. A module's
 * files are opened for them, and closed after the export: between exports there is no descriptor,
 * no mapping and no debug information, and of the tables of symbols only the small ones. Debug
 * information is read again only after enough exports have passed (so many bytes an export); until
 * then new addresses in that module get their functions at once, and their lines later. An address
 * that cannot be resolved has no lines: the receiver gets the address and the build id, and may
 * know more. Context: flush.
 */
#ifndef OTELPROF_SYMBOLIZE_H
#define OTELPROF_SYMBOLIZE_H

#include "config.h"
#include "harvest.h"

struct symbolizer;
struct generated_name;

struct symbol_line {
    const char *function;    /* readable; never NULL */
    const char *system_name; /* the name in the file */
    const char *file;        /* "" = not known */
    int line;                /* 0 = not known */
    int start_line;
    uint64_t offset; /* of data: from the start of the variable that `function` names */
};

/* Inlined functions at one address; outer ones beyond them are left out. */
enum { MAX_SYMBOL_LINES = 32 };

/* All work with libelf and libdw runs through `guarded` (struct capture_api). NULL: no memory. */
struct symbolizer *symbolizer_open(enum symbols mode, memory_guard *guarded);
/* Counts losses in `api` from now on; its CPU clock bounds the time for names: an interval of CPU
 * time for each export, at least a second. `api` must stay until the next call. */
void symbolizer_set_api(struct symbolizer *symbolizer, const struct capture_api *api);
/* Limits the next export: to so many bytes of debug information and large tables of symbols, or, if
 * `named` is false, to no names of new addresses; these get names once there is memory. */
void symbolizer_limit(struct symbolizer *symbolizer, uint64_t dwarf_room, bool named);
void symbolizer_close(struct symbolizer *symbolizer);

/* Counts an export. Forgets old addresses if there are too many, and files that the latest exports
 * did not use: earlier results of symbolizer_lines() become invalid. Call before each interval's
 * export, by any exporter. */
void symbolizer_trim(struct symbolizer *symbolizer);

/* Closes all files and frees their data, except small tables. Results stay known. Call after each
 * interval's export. */
void symbolizer_close_files(struct symbolizer *symbolizer);

/* Gives the functions at the run-time `address` of `module`, inlined callee first, physical
 * function last. Returns their number, 0 = not known. Strings live until the next
 * symbolizer_trim(). */
size_t symbolizer_lines(struct symbolizer *symbolizer, const struct harvest_module *module,
                        uint64_t address, struct symbol_line *lines, size_t max);

/* Gives the variable around the run-time `address` of `module`, as `function`, and `offset`. false:
 * not known. Strings live as long. */
bool symbolizer_variable(struct symbolizer *symbolizer, const struct harvest_module *module,
                         uint64_t address, struct symbol_line *variable);

/* Gives the function at the run-time `address`, which lies in no module: of code that a JIT
 * compiler has made and reported (generated_names.h). false: not known. Strings live as long. */
bool symbolizer_generated(struct symbolizer *symbolizer, const struct harvest_module *modules,
                          size_t count, uint64_t address, struct generated_name *found);

/* Returns process.executable.build_id.htlhash of the module's file (facts of the eBPF profiler:
 * SHA-256 over the first and last 4096 bytes and the length, the first 16 bytes in hex), or NULL.
 */
const char *symbolizer_htlhash(struct symbolizer *symbolizer, const struct harvest_module *module);

#endif
