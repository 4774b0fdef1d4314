/* Finds thread-local variables by their names, in all loaded objects.
 *
 * A definer lists the variable in its dynamic symbols; libraries loaded with RTLD_LOCAL are
 * included. The loader's processed relocations give its place: the loader has bound each of them to
 * one definition, so those that name the variable count in whichever object they are, its own or
 * one that only uses it, and no definition has to be chosen here. One in a definer's own table may
 * name no symbol, where the linker has bound it. A definer that no relocation leads to is an
 * executable, of which the linker knew the offset, or is used by dlsym alone: its own block is
 * taken, as the loader reports it for the calling thread, or else its number. dlsym() is not
 * called: it would allocate the thread's block. dl_iterate_phdr() lists the objects; those that
 * dlmopen() has put into other namespaces are not among them.
 */
#ifndef OTELPROF_VARIABLE_SEARCH_H
#define OTELPROF_VARIABLE_SEARCH_H

#include "thread_variable.h"
#include "unwind/fixed_modules.h"

#include <link.h>
#include <stdbool.h>
#include <stdint.h>

struct variable_search {
    const char *name;
    /* Returns the source (CONTEXT_*) that the object's definition of the variable is; 0: none.
     * `path`: as the loader names it; "" is the executable. */
    uint64_t (*source)(const struct dl_phdr_info *object, const char *path);
    uint64_t wanted;                   /* wanted sources; definitions of others are not stored */
    const struct fixed_modules *fixed; /* NULL: all may go */
    struct thread_variable *found;     /* THREAD_VARIABLES of them */
    uint32_t count;                    /* entries of `found`, earlier ones included */
};

/* Adds what it finds to search->found, as far as there is room. false: an object has a relocation
 * that the loader has not worked on yet. Context: calm, on a thread whose stack holds its static
 * TLS (any but the main thread), best while nothing is being loaded; takes the loader's lock. */
bool variable_search_run(struct variable_search *search);

#endif
