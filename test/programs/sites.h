/* Has ground truth for allocation profiles: every allocation site is a function of its own. Its
 * objects, and those that are still live, are counted beside it and printed as JSON at the end. */
#ifndef TEST_SITES_H
#define TEST_SITES_H

#include "noipa.h"

#include <stdint.h>
#include <stdio.h>

/* Keeps a call from becoming the function's last act (a tail call has no frame). */
#define KEEP(p) __asm__ volatile("" : "+r"(p) : : "memory")

struct site {
    const char *name;
    size_t size;
    uint64_t objects;
    uint64_t live;
    uint64_t keep_every; /* keeps one object in so many; 0: none */
    uint64_t limit;      /* the most objects; 0: no limit */
};

/* Prints "name": {"size", "objects", "bytes", "live_objects", "live_bytes"}, in one object. */
static inline void sites_print(const struct site *const *sites, size_t count) {
    printf("{");
    for (size_t i = 0; i < count; i++)
        printf("%s\"%s\": {\"size\": %zu, \"objects\": %lu, \"bytes\": %lu, \"live_objects\": %lu, "
               "\"live_bytes\": %lu}",
               i ? ", " : "", sites[i]->name, sites[i]->size, sites[i]->objects,
               sites[i]->objects * sites[i]->size, sites[i]->live, sites[i]->live * sites[i]->size);
    printf("}\n");
}

#endif
