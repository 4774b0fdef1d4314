/* Searches the loaded objects for the name of the class in which OpenTelemetry's C++ API stores
 * contexts.
 *
 * Each object is searched once, piece by piece. The loader's locks are held while a piece is read,
 * so that no object is loaded or unloaded meanwhile. The pieces are small, because the program may
 * wait for these locks.
 */
#ifndef OTELPROF_CPP_NAME_SEARCH_H
#define OTELPROF_CPP_NAME_SEARCH_H

#include "cpp_context.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CPP_OBJECTS = 16, CPP_SEARCHED = 2048 };

/* Holds the state of the search. All zero: no object was searched. */
struct cpp_name_search {
    struct cpp_object found[CPP_OBJECTS]; /* objects loaded at the last search */
    uint64_t found_in[CPP_OBJECTS];       /* the hashes of these objects */
    size_t count;
    uint64_t searched[CPP_SEARCHED]; /* objects searched so far: hashes of address and build */
    size_t searched_count;
    uint64_t place; /* hash of the object that is being searched */
    uint64_t offset;
    uint64_t adds; /* the loader's counters at the last search */
    uint64_t subs;
    bool cut; /* some objects could not be searched completely */
};

enum cpp_search_result {
    CPP_SEARCH_SAME,      /* no object was loaded or unloaded since the last call */
    CPP_SEARCH_PREVENTED, /* another thread is inside the loader: call again later */
    CPP_SEARCH_DONE
};

/* Searches the objects loaded since the last call, for about `most_nano` of CPU time; if that does
 * not suffice, the next call continues. Context: the helper. */
enum cpp_search_result cpp_name_search(struct cpp_name_search *search, uint64_t most_nano);

#endif
