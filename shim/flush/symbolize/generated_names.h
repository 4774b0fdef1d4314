/* Names of code that lies in no file: what JIT compilers report of it, for the Linux tool perf or
 * for debuggers. The one door to all of that.
 *
 * Nothing is opened or looked for before an export has an address outside of all objects; then, for
 * that export, what the runtime has reported since is read once. No program reports for us: a
 * process whose runtime writes no perf map costs one failing open() an export. Where several
 * sources know an address, the one that knows more is asked first. A forked child begins anew: its
 * runtime reports under its own number. Context: flush.
 */
#ifndef OTELPROF_GENERATED_NAMES_H
#define OTELPROF_GENERATED_NAMES_H

#include "generated_name.h"
#include "harvest.h"

struct generated_names;

/* Another export begins, in which losses are counted in `api`, which may be NULL: what was answered
 * before may be gone. The first makes `*names`, which is NULL, unless there is no memory. NULL has
 * no names. */
void generated_names_begin(struct generated_names **names, memory_guard *guarded,
                           const struct capture_api *api);
void generated_names_close(struct generated_names *names);

/* Whose code is at the run-time `address`, which lies in none of the `count` modules. false: nobody
 * has reported it. Strings live until the next generated_names_begin(). */
bool generated_names_find(struct generated_names *names, const struct harvest_module *modules,
                          size_t count, uint64_t address, struct generated_name *found);

/* Closes all files, after an export. */
void generated_names_rest(struct generated_names *names);

#endif
