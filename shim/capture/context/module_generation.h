/* Finds the generation since which a thread-local module's number belongs to its object.
 *
 * The loader reuses the number of an unloaded library for another one. A thread's vector keeps the
 * old block under that number until the thread first uses a variable of the new library: the block
 * has another size, and holds other variables. So the loader counts loads and unloads: this count
 * is the generation. Its list (`struct dtv_slotinfo`) has, for each number, the generation at which
 * the present object got it; a thread's vector has the generation of its last update
 * (thread_vector_block()). The list has no public name: glibc publishes its place for debuggers
 * (libthread_db), since 2.34 in libc's dynamic symbols. An entry is used only if it leads to the
 * object itself.
 */
#ifndef OTELPROF_MODULE_GENERATION_H
#define OTELPROF_MODULE_GENERATION_H

#include <link.h>
#include <stdint.h>

#define GENERATION_UNKNOWN UINT64_MAX

/* Returns the generation from which on a vector's block of `module` belongs to the object with this
 * dynamic section; GENERATION_UNKNOWN, which no vector reaches, if it is not known. Context: calm,
 * while nothing is loaded or unloaded. */
uint64_t module_generation(uint64_t module, const ElfW(Dyn) * dynamic);

#endif
