/* From an address to functions, files and lines.
 *
 * Each address is resolved once and remembered, so that a cycle pays for new addresses only. A
 * module's files are opened for them, and closed when the export has been made: between exports
 * there is no descriptor, no mapping and no debug information, and of the tables of symbols only
 * the small ones. Reading debug information again is put off until it has been paid for (so many
 * bytes an export); until then new addresses in that module have their functions, and their lines
 * later. What cannot be resolved has no lines: the receiver gets the address and the build id, and
 * may know better. Context: flush.
 */
#ifndef OTELPROF_SYMBOLIZE_H
#define OTELPROF_SYMBOLIZE_H

#include "config.h"
#include "harvest.h"

struct symbolizer;
struct generated_name;

struct symbol_line {
    const char *function;    /* readable; never NULL */
    const char *system_name; /* as the file has it */
    const char *file;        /* "" = not known */
    int line;                /* 0 = not known */
    int start_line;
    uint64_t offset; /* of data: from the start of the variable, which `function` names */
};

/* Inlined functions that one address may lie in, beyond which outer ones are left out. */
enum { MAX_SYMBOL_LINES = 32 };

/* Whatever uses libelf and libdw is done through `guarded` (struct capture_api). NULL: no memory.
 */
struct symbolizer *symbolizer_open(enum symbols mode, memory_guard *guarded);
/* From now on losses are counted in `api`, and its CPU clock bounds the time for names: an interval
 * of CPU time for each export, at least a second. `api` must stay until the next call of this. */
void symbolizer_attend(struct symbolizer *symbolizer, const struct capture_api *api);
/* For the next export: there is memory for so many bytes of debug information, or for no names of
 * new addresses at all; they are named when there is. */
void symbolizer_limit(struct symbolizer *symbolizer, uint64_t dwarf_room, bool named);
void symbolizer_close(struct symbolizer *symbolizer);

/* Counts an export. Forgets old addresses if there are too many, and what is known of files that
 * have not been asked for in the latest exports: what symbolizer_lines() returned before is invalid
 * after. Call before each interval's export, by whatever exporter. */
void symbolizer_trim(struct symbolizer *symbolizer);

/* Closes all files and gives back what was read of them, but for small tables. What was answered
 * stays known. Call after each interval's export. */
void symbolizer_rest(struct symbolizer *symbolizer);

/* The functions at the run-time `address` of `module`, inlined callee first, physical function
 * last. Returns their number, 0 = not
 * known. Strings live until the next symbolizer_trim(). */
size_t symbolizer_lines(struct symbolizer *symbolizer, const struct harvest_module *module,
                        uint64_t address, struct symbol_line *lines, size_t max);

/* The variable that the run-time `address` of `module` lies in, as `function`, and `offset`. false:
 * not known. Strings live as long. */
bool symbolizer_variable(struct symbolizer *symbolizer, const struct harvest_module *module,
                         uint64_t address, struct symbol_line *variable);

/* The function at the run-time `address`, which lies in no module: of code that a JIT compiler has
 * made, and reported (generated_names.h). false: not known. Strings live as long. */
bool symbolizer_generated(struct symbolizer *symbolizer, const struct harvest_module *modules,
                          size_t count, uint64_t address, struct generated_name *found);

/* process.executable.build_id.htlhash of the module's file (facts of the eBPF profiler: SHA-256
 * over the first and last 4096 bytes and the length, the first 16 bytes in hex), or NULL. */
const char *symbolizer_htlhash(struct symbolizer *symbolizer, const struct harvest_module *module);

#endif
