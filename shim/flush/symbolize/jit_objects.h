/* Reads names of generated code from the reports of JIT compilers to debuggers: the GDB JIT
 * interface (GDB's manual, "JIT Compilation Interface"), which LLVM has.
 *
 * A library with this interface keeps a list of ELF files in memory, one for each existing piece of
 * code, behind the variable __jit_debug_descriptor. Functions are read from their tables of
 * symbols. The list changes while it is read, by threads that do not know of the profiler: every
 * byte is read with safe_read(), within bounds, and inconsistent data gives no names. Nothing is
 * kept from one export to the next, for code that is gone gives no names either: code that was made
 * and freed within an interval stays anonymous.
 *
 * Perf maps and jitdump files do not replace it: numba's functions have names by it alone. Without
 * this reader 96 % of the CPU time in generated code of test/stacks/loads/work_numba.py is
 * [anonymous], with it 0 %; NUMBA_ENABLE_PROFILING changes nothing, as numba's LLVM writes no
 * jitdump file. Context: flush.
 */
#ifndef OTELPROF_JIT_OBJECTS_H
#define OTELPROF_JIT_OBJECTS_H

#include "arena.h"
#include "code_map.h"
#include "generated_name.h"
#include "harvest.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct jit_lists;

/* Zeroed: nothing is known. */
struct jit_objects {
    struct jit_lists *lists; /* the descriptors of modules, or that they have none */
    struct arena arena;
    struct arena_list names; /* by number */
    struct code_map ranges;
    size_t left; /* bytes of objects that may still be read, while a read is in progress */
    bool read;
};

/* Reads the lists of all modules again. false: there was more than is kept. */
bool jit_objects_read(struct jit_objects *objects, const struct harvest_module *modules,
                      size_t count);

/* Does the same for the list whose descriptor is at that address. */
bool jit_objects_read_list(struct jit_objects *objects, uint64_t descriptor);

/* Returns the function at `address`, until the next jit_objects_read(). NULL: none is known. */
const char *jit_objects_find(struct jit_objects *objects, uint64_t address);

/* Forgets the objects, and remembers the lists' addresses. */
void jit_objects_forget(struct jit_objects *objects);
void jit_objects_close(struct jit_objects *objects);

#endif
