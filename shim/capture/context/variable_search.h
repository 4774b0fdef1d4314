/* Finds thread-local variables by their names, in all loaded objects.
 *
 * A definer lists the variable in its dynamic symbols; libraries loaded with RTLD_LOCAL are
 * included. The place of a variable comes from relocations that the loader has processed, in every
 * object, because the loader has already chosen the definition for each. In a definer's own table
 * the linker may have bound the relocation; then it names no symbol. Some definers have no
 * relocation: an executable, whose linker knew the offset, or an object used by dlsym alone. For
 * them the block that the loader reports for the calling thread is taken, or else the module's
 * number. dlsym() is not called, because it would allocate the thread's block. dl_iterate_phdr()
 * lists the objects; those that dlmopen() has put into other namespaces are not among them.
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
    /* Returns the source (CONTEXT_*) of the object's definition of the variable; 0: it is none.
     * `path`: the loader's name of the object; "" is the executable. */
    uint64_t (*source)(const struct dl_phdr_info *object, const char *path);
    /* wanted sources; definitions of other sources are not stored */
    uint64_t wanted;
    /* objects that are never unloaded; NULL: any object may be unloaded */
    const struct fixed_modules *fixed;
    struct thread_variable *found; /* room for THREAD_VARIABLES */
    uint32_t count;                /* entries of `found`, earlier ones included */
};

/* Adds the variables that it finds to search->found, up to its capacity. Returns false if the
 * loader has not processed all relocations of an object yet. Context: calm, on a thread whose stack
 * holds its static TLS (any but the main thread), best while no object is being loaded; takes the
 * loader's lock. */
bool variable_search_run(struct variable_search *search);

#endif
