/* Translates addresses to functions, files and lines.
 *
 * Each address is resolved once and remembered, so a cycle pays for new addresses only. A module's
 * files are opened for new addresses, and closed after the export: between exports no descriptor,
 * mapping or debug information is kept, only small tables of symbols. A module's debug information
 * is read again only after enough exports, so that on average an export reads a bounded number of
 * bytes. Until then new addresses in that module get their functions at once, and their lines
 * later. An address that cannot be resolved has no lines: the receiver gets the address and the
 * build id, and may know more. Context: flush.
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
    const char *file;        /* "": not known */
    int line;                /* 0: not known */
    int start_line;
    uint64_t offset; /* for data: offset from the start of the variable that `function` names */
};

/* Bounds the inlined functions that are listed at one address; functions further out are left
 * out. */
enum { MAX_SYMBOL_LINES = 32 };

/* Opens a symbolizer. All work with libelf and libdw runs through `guarded` (struct capture_api).
 * NULL: no memory. */
struct symbolizer *symbolizer_open(enum symbols mode, memory_guard *guarded);
/* Counts losses in `api` from now on. The CPU clock of `api` bounds the time for names: an interval
 * of CPU time for each export, at least a second. `api` must stay valid until the next call; NULL:
 * losses are not counted, and the time has no bound. */
void symbolizer_set_api(struct symbolizer *symbolizer, const struct capture_api *api);
/* Limits the next export to `dwarf_room` bytes of debug information and large tables of symbols. If
 * `named` is false, new addresses get no names until there is memory. */
void symbolizer_limit(struct symbolizer *symbolizer, uint64_t dwarf_room, bool named);
void symbolizer_close(struct symbolizer *symbolizer);

/* Counts an export. Forgets all addresses if they take too much memory, or if there are many files
 * that the latest exports did not use; these files are then forgotten, too. Earlier results of
 * symbolizer_lines() become invalid. Must be called before each interval's export, by any
 * exporter. */
void symbolizer_trim(struct symbolizer *symbolizer);

/* Closes all files and frees their data, except small tables. Results stay valid. Must be called
 * after each interval's export. */
void symbolizer_close_files(struct symbolizer *symbolizer);

/* Stores the functions at the run-time `address` of `module`, inlined callee first, compiled
 * function last. Returns their number; 0: not known. Strings are valid until the next
 * symbolizer_trim(). */
size_t symbolizer_lines(struct symbolizer *symbolizer, const struct harvest_module *module,
                        uint64_t address, struct symbol_line *lines, size_t max);

/* Stores the variable around the run-time `address` of `module` as `function`, and the offset in
 * it. Returns false if it is not known. Strings are valid as those of symbolizer_lines(). */
bool symbolizer_variable(struct symbolizer *symbolizer, const struct harvest_module *module,
                         uint64_t address, struct symbol_line *variable);

/* Stores the function at the run-time `address`, which is in no module: in code that a JIT compiler
 * has made and reported (generated_names.h). Returns false if it is not known. Strings are valid as
 * those of symbolizer_lines(). */
bool symbolizer_generated(struct symbolizer *symbolizer, const struct harvest_module *modules,
                          size_t count, uint64_t address, struct generated_name *found);

/* Returns process.executable.build_id.htlhash of the module's file (file_hash.h), valid until the
 * next symbolizer_trim(); NULL if it is not known.
 */
const char *symbolizer_htlhash(struct symbolizer *symbolizer, const struct harvest_module *module);

#endif
