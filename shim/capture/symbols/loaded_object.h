/* Finds the object that contains an address, by a function of the loader.
 *
 * Uses _dl_find_object() (glibc 2.35 and later), the one lookup of the C library that is documented
 * as async-signal-safe. */
#ifndef OTELPROF_LOADED_OBJECT_H
#define OTELPROF_LOADED_OBJECT_H

#include <link.h>

/* Repeats struct dl_find_object of glibc's <dlfcn.h>, so that the profiler builds with the headers
 * of an older glibc; its reserved tail is part of the ABI. */
struct loaded_object {
    unsigned long long flags;
    void *map_start;
    void *map_end;
    struct link_map *link_map;
    void *eh_frame;
    unsigned long long reserved[7];
};

/* Finds the object around an address. Returns 0 if there is one. */
typedef int loaded_object_find(void *address, struct loaded_object *found);

/* Returns _dl_find_object, or NULL before glibc 2.35. Context: calm. */
loaded_object_find *loaded_object_finder(void);

#endif
