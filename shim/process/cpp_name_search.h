/* The search for the name of OpenTelemetry's storage of contexts in what is loaded.
 *
 * An object is searched once, a piece at a time: the loader's lock is held while a piece is read,
 * because nothing is unloaded under it, and no program is to wait for that for long.
 */
#ifndef OTELPROF_CPP_NAME_SEARCH_H
#define OTELPROF_CPP_NAME_SEARCH_H

#include "cpp_context.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CPP_OBJECTS = 16, CPP_SEARCHED = 2048 };

/* Zeroed: nothing was searched. */
struct cpp_name_search {
    struct cpp_object found[CPP_OBJECTS]; /* those that were loaded at the last search */
    uint64_t found_in[CPP_OBJECTS];       /* the objects' hashes */
    size_t count;
    uint64_t searched[CPP_SEARCHED]; /* which objects, by a hash of where and what they are */
    size_t searched_count;
    uint64_t place; /* of the object that is being searched: its hash, and how far it was */
    uint64_t offset;
    uint64_t adds; /* the loader's counters at the last search */
    uint64_t subs;
    bool cut; /* not everything could be searched */
};

/* Searches what came since the last time, for at most `most_nano` of CPU time. true: objects came
 * or went. Context: the helper. */
bool cpp_name_search(struct cpp_name_search *search, uint64_t most_nano);

#endif
