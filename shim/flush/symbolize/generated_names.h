/* Finds names of code that lies in no file, in reports of JIT compilers for the Linux tool perf or
 * for debuggers. This is the one interface to all of them.
 *
 * No file is opened or searched before an export has an address outside of all objects; then the
 * helper reads the runtime's new reports, once for that export. If the runtime writes no perf map,
 * this costs one failing open() an export. If several sources have an address, the name in a
 * jitdump file is used, else that in a perf map, else that of an object in memory. A forked child
 * begins without reports, because its runtime reports under the child's process id. Context: flush.
 */
#ifndef OTELPROF_GENERATED_NAMES_H
#define OTELPROF_GENERATED_NAMES_H

#include "generated_name.h"
#include "harvest.h"

struct generated_names;

/* Begins an export; results from the last export may become invalid. Losses are counted in `api`,
 * which may be NULL. The first call, with `*names` NULL, allocates `*names`; without memory it
 * stays NULL, and no name is found. */
void generated_names_begin(struct generated_names **names, memory_guard *guarded,
                           const struct capture_api *api);
void generated_names_close(struct generated_names *names);

/* Names the code at the run-time `address`, which lies in none of the `count` modules. Returns
 * false if no report covers it. Strings are valid until the next generated_names_begin(). */
bool generated_names_find(struct generated_names *names, const struct harvest_module *modules,
                          size_t count, uint64_t address, struct generated_name *found);

/* Closes all files, and drops the objects in memory, after an export. */
void generated_names_close_files(struct generated_names *names);

#endif
