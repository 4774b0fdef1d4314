/* Reads names of generated code from the reports of JIT compilers to debuggers: the GDB JIT
 * interface (GDB's manual, "JIT Compilation Interface"), which LLVM has.
 *
 * A library with this interface keeps a list of ELF files in memory, one for each existing piece of
 * code, behind the variable __jit_debug_descriptor. Functions are read from their tables of
 * symbols. The list changes while it is read, by threads that do not know of the profiler: every
 * byte is read with safe_read(), within bounds, and inconsistent data gives no names. No names are
 * kept from one export to the next, because their code may be freed; code that was made and freed
 * within an interval stays anonymous.
 *
 * Perf maps and jitdump files do not replace this interface: only it names numba's functions.
 * Without this reader 96 % of the CPU time in generated code of test/stacks/loads/work_numba.py is
 * [anonymous], with it 0 %; NUMBA_ENABLE_PROFILING has no effect, because numba's LLVM writes no
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

/* Holds the objects. Initially zero: no object is known. */
struct jit_objects {
    struct jit_lists *lists; /* the address of each module's descriptor, or that it has none */
    struct arena arena;
    struct arena_list names; /* names of functions, by number */
    struct code_map ranges;
    size_t left; /* during a read: number of bytes of objects that may still be read */
    bool read;
};

/* Reads the lists of all modules again. Returns false if there were more objects than are kept. */
bool jit_objects_read(struct jit_objects *objects, const struct harvest_module *modules,
                      size_t count);

/* Reads the list whose descriptor is at that address. Returns false as jit_objects_read() does. */
bool jit_objects_read_list(struct jit_objects *objects, uint64_t descriptor);

/* Returns the function at `address`, until the next jit_objects_read(). NULL: none is known. */
const char *jit_objects_find(struct jit_objects *objects, uint64_t address);

/* Drops the objects, but remembers the addresses of the lists. */
void jit_objects_forget(struct jit_objects *objects);
void jit_objects_close(struct jit_objects *objects);

#endif
