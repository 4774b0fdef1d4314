#include "fixed_modules.h"

#include "dynamic_object.h"
#include "hash.h"

#include <string.h>
#include <sys/auxv.h>

enum { NEEDED_PER_OBJECT = 64 };

/* Holds the state of the search for one object. Names are compared by a 64-bit hash: only a
 * collision could confuse two objects. */
struct candidate {
    struct cfi_tables tables;
    uint64_t soname;
    uint64_t file_name;
    uint32_t needed_count;
    bool fixed;
    uint64_t needed[NEEDED_PER_OBJECT];
};

struct search {
    uintptr_t own;
    uintptr_t vdso;
    uint32_t count;
    struct candidate *candidates; /* array of FIXED_MODULES */
};

/* Returns the hash of `name`; 0: the name does not end within `size`. */
static uint64_t hash_of_name(const char *name, size_t size) {
    uint64_t hash = 0;
    for (size_t i = 0; i < size; i++) {
        if (!name[i])
            return hash;
        hash = hash_word(hash, (unsigned char)name[i]);
    }
    return 0;
}

/* --- reading one object --- */

static void fixed_modules_read_names(struct candidate *object) {
    const struct dynamic_object dynamic = dynamic_object_of(&object->tables.segments);
    const uintptr_t strings = dynamic_address(&dynamic, DT_STRTAB);
    const struct readable_range range = object_readable_around(&object->tables.segments, strings);
    for (size_t i = 0; i < dynamic.count; i++) {
        const ElfW(Dyn) *const entry = &dynamic.entries[i];
        if (entry->d_tag != DT_SONAME && entry->d_tag != DT_NEEDED)
            continue;
        if (range.end == range.start || entry->d_un.d_val >= range.end - strings)
            continue;
        const uintptr_t name = strings + entry->d_un.d_val;
        const uint64_t hash = hash_of_name((const char *)name, range.end - name);
        if (entry->d_tag == DT_SONAME)
            object->soname = hash;
        else if (hash && object->needed_count < NEEDED_PER_OBJECT)
            object->needed[object->needed_count++] = hash;
    }
}

static void candidate_add_segment(struct candidate *object, uintptr_t bias,
                                  const ElfW(Phdr) * segment) {
    const uintptr_t start = bias + segment->p_vaddr;
    const uintptr_t end = start + segment->p_memsz;
    if (object->tables.end == 0 || start < object->tables.start)
        object->tables.start = start;
    if (end > object->tables.end)
        object->tables.end = end;
}

static int collect_object(struct dl_phdr_info *info, size_t size, void *arg) {
    struct search *const search = arg;
    (void)size;
    if (search->count == FIXED_MODULES)
        return 1;
    struct candidate *const object = &search->candidates[search->count];
    *object = (struct candidate){.fixed = search->count == 0};
    object->tables.segments = object_segments_of(info);
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *const segment = &info->dlpi_phdr[i];
        const uintptr_t address = info->dlpi_addr + segment->p_vaddr;
        if (segment->p_type == PT_LOAD)
            candidate_add_segment(object, info->dlpi_addr, segment);
        else if (segment->p_type == PT_GNU_EH_FRAME)
            object->tables.header = address;
    }
    if (object->tables.end == 0)
        return 0;
    const char *const slash = info->dlpi_name ? strrchr(info->dlpi_name, '/') : NULL;
    if (slash)
        object->file_name = hash_of_name(slash + 1, SIZE_MAX);
    fixed_modules_read_names(object);
    object->fixed |= search->own >= object->tables.start && search->own < object->tables.end;
    object->fixed |= search->vdso != 0 && search->vdso == object->tables.start;
    search->count++;
    return 0;
}

/* --- following needed objects --- */

static bool needs_object(const struct candidate *object, const struct candidate *other) {
    for (uint32_t i = 0; i < object->needed_count; i++) {
        const uint64_t name = object->needed[i];
        if (name == other->soname || name == other->file_name)
            return true;
    }
    return false;
}

/* Marks each object that a fixed object needs as fixed, in one pass. Returns false if that added no
 * object. */
static bool fix_needed_objects(const struct search *search) {
    bool added = false;
    for (uint32_t i = 0; i < search->count; i++) {
        struct candidate *const other = &search->candidates[i];
        for (uint32_t k = 0; k < search->count && !other->fixed; k++)
            if (search->candidates[k].fixed && needs_object(&search->candidates[k], other))
                added = other->fixed = true;
    }
    return added;
}

static void fixed_modules_insert(struct fixed_modules *fixed, const struct cfi_tables *tables) {
    uint32_t at = fixed->count++;
    for (; at > 0 && fixed->tables[at - 1].start > tables->start; at--)
        fixed->tables[at] = fixed->tables[at - 1];
    fixed->tables[at] = *tables;
    fixed->tables[at].fixed = true;
}

/* static, in pages that only the search touches */
static struct candidate candidates[FIXED_MODULES];

void fixed_modules_find(struct fixed_modules *fixed, uintptr_t own) {
    struct search search = {
        .own = own, .vdso = getauxval(AT_SYSINFO_EHDR), .candidates = candidates};
    dl_iterate_phdr(collect_object, &search);
    while (fix_needed_objects(&search))
        ;
    fixed->count = 0;
    for (uint32_t i = 0; i < search.count; i++)
        if (candidates[i].fixed)
            fixed_modules_insert(fixed, &candidates[i].tables);
}
