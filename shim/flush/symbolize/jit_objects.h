/* Names of generated code from what JIT compilers tell debuggers: the GDB JIT interface (GDB's
 * manual, "JIT Compilation Interface"), which LLVM has.
 *
 * A library that has it keeps a list of ELF files in memory, one for each piece of code that is
 * there, behind the variable __jit_debug_descriptor. Functions are read from their tables of
 * symbols. The list changes while it is read, by threads that know nothing of us: every byte is
 * read with safe_read(), within bounds, and what does not fit together names nothing. Nothing is
 * kept from one export to the next, for code that is gone names nothing either: what a compiler
 * made and freed within an interval stays anonymous. Context: flush.
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
    struct jit_lists *lists; /* where modules have theirs, or have none */
    struct arena arena;
    struct arena_list names; /* by number */
    struct code_map ranges;
    size_t left; /* bytes of objects that may still be read, where something was read */
    bool read;
};

/* Reads the lists of all modules anew. false: there was more than is kept. */
bool jit_objects_read(struct jit_objects *objects, const struct harvest_module *modules,
                      size_t count);

/* The same of the list whose descriptor is at that address. */
bool jit_objects_read_list(struct jit_objects *objects, uint64_t descriptor);

/* The function at `address`, until the next jit_objects_read(). NULL: none is known. */
const char *jit_objects_find(struct jit_objects *objects, uint64_t address);

/* Forgets the objects; where lists are stays known. */
void jit_objects_rest(struct jit_objects *objects);
void jit_objects_close(struct jit_objects *objects);

#endif
