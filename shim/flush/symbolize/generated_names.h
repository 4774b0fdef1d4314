/* Finds names of code that lies in no file, in reports of JIT compilers for the Linux tool perf or
 * for debuggers. This is the one interface to all of them.
 *
 * Nothing is opened or searched before an export has an address outside of all objects; then the
 * runtime's new reports are read, once for that export. No program reports for the profiler's sake:
 * a process whose runtime writes no perf map costs one failing open() an export. If several sources
 * have an address, the one with more details comes first. A forked child begins with nothing: its
 * runtime reports under its own number. Context: flush.
 */
#ifndef OTELPROF_GENERATED_NAMES_H
#define OTELPROF_GENERATED_NAMES_H

#include "generated_name.h"
#include "harvest.h"

struct generated_names;

/* Begins an export; results of the last one may become invalid. Losses are counted in `api`, which
 * may be NULL. The first call, with `*names` NULL, allocates `*names`; without memory it stays
 * NULL, and no name is found. */
void generated_names_begin(struct generated_names **names, memory_guard *guarded,
                           const struct capture_api *api);
void generated_names_close(struct generated_names *names);

/* Names the code at the run-time `address`, which lies in none of the `count` modules. false: no
 * report covers it. Strings live until the next generated_names_begin(). */
bool generated_names_find(struct generated_names *names, const struct harvest_module *modules,
                          size_t count, uint64_t address, struct generated_name *found);

/* Closes all files, after an export. */
void generated_names_close_files(struct generated_names *names);

#endif
