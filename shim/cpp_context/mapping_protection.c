#include "mapping_protection.h"

#include "process_maps.h"

#include <stdbool.h>
#include <sys/mman.h>

struct part {
    uintptr_t start;
    uintptr_t end;
    int protection;
};

/* Returns false if this is not the mapping around the part's start. */
static bool is_around(void *arg, const struct process_mapping *mapping) {
    struct part *const part = arg;
    const char *const mode = mapping->rest;
    if (*mode != ' ' || part->start < mapping->start || part->start >= mapping->end)
        return false;
    part->protection = (mode[1] == 'r' ? PROT_READ : 0) | (mode[2] == 'w' ? PROT_WRITE : 0) |
                       (mode[3] == 'x' ? PROT_EXEC : 0);
    if (part->end > mapping->end || mode[4] != 'p')
        part->protection = -1;
    return true;
}

int mapping_protection(uintptr_t start, uintptr_t end) {
    struct part part = {start, end, -1};
    (void)process_maps_visit(is_around, &part);
    return part.protection;
}
