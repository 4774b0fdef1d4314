/* Reads a loaded object's dynamic section: where its tables are in memory, and its relocations.
 *
 * For the tags that it uses itself, the loader has replaced the file's addresses by addresses in
 * memory, except in the vDSO, where it cannot write. So a value below the object's start is still
 * an address of the file. Of several entries with one tag the loader keeps the last. If the object
 * may be damaged, the caller must check whether an address can be read (object_segments.h).
 * Context: any, while the object stays loaded. Async-signal-safe: yes.
 */
#ifndef OTELPROF_DYNAMIC_OBJECT_H
#define OTELPROF_DYNAMIC_OBJECT_H

#include "object_segments.h"

#include <elf.h>
#include <link.h>
#include <stddef.h>
#include <stdint.h>

enum {
    DYNAMIC_STANDARD_TAGS = 32, /* tags up to DT_RUNPATH, and a few more */
    DYNAMIC_VERSION_TAGS = DT_VERNEEDNUM - DT_VERSYM + 1,
    DYNAMIC_GNU_HASH = DYNAMIC_STANDARD_TAGS + DYNAMIC_VERSION_TAGS,
    DYNAMIC_SLOTS
};

struct dynamic_object {
    uintptr_t bias;  /* difference between addresses in memory and addresses in the file */
    uintptr_t start; /* lowest address of the object, or an address below it */
    ElfW(Dyn) * entries;
    size_t count;                   /* number of entries without DT_NULL */
    uint16_t by_tag[DYNAMIC_SLOTS]; /* 1 + index of the entry; 0: none */
};

/* Returns the place of a tag in `by_tag`; tags that no caller needs share the place of DT_NULL. */
static inline size_t dynamic_slot(int64_t tag) {
    if (tag >= 0 && tag < DYNAMIC_STANDARD_TAGS)
        return (size_t)tag;
    if (tag == DT_GNU_HASH)
        return DYNAMIC_GNU_HASH;
    return tag >= DT_VERSYM && tag <= DT_VERNEEDNUM
               ? DYNAMIC_STANDARD_TAGS + (size_t)(tag - DT_VERSYM)
               : DT_NULL;
}

/* Reads the entries before DT_NULL, at most `most` and at most 65,535. The entries must stay valid
 * while the result is used. */
void dynamic_object_read(struct dynamic_object *object, ElfW(Dyn) * entries, size_t most,
                         uintptr_t bias, uintptr_t start);

/* Reads the entries that lie in the object's readable segment; none if it has no dynamic
 * section. */
struct dynamic_object dynamic_object_of(const struct object_segments *segments);

/* Reads all entries of an object that the loader has used. */
static inline struct dynamic_object dynamic_object_of_map(const struct link_map *map) {
    struct dynamic_object object;
    dynamic_object_read(&object, map->l_ld, map->l_ld ? SIZE_MAX : 0, map->l_addr, map->l_addr);
    return object;
}

static inline ElfW(Dyn) * dynamic_entry(const struct dynamic_object *object, int64_t tag) {
    const uint16_t place = object->by_tag[dynamic_slot(tag)];
    return place ? &object->entries[place - 1] : NULL;
}

/* Returns the value of the tag's entry; 0 if there is none. */
static inline size_t dynamic_number(const struct dynamic_object *object, int64_t tag) {
    const ElfW(Dyn) *const entry = dynamic_entry(object, tag);
    return entry ? entry->d_un.d_val : 0;
}

/* Returns the address in memory; 0 if there is no such entry. Adds the bias where the loader has
 * not added it: some loaders relocate these entries, but none relocates DT_VERDEF and
 * DT_VERNEED. */
static inline uintptr_t dynamic_address(const struct dynamic_object *object, int64_t tag) {
    const ElfW(Dyn) *const entry = dynamic_entry(object, tag);
    if (!entry)
        return 0;
    const uintptr_t value = entry->d_un.d_ptr;
    const bool is_of_file = tag == DT_VERDEF || tag == DT_VERNEED || value < object->start;
    return is_of_file ? object->bias + value : value;
}

/* Visits the relocations that the loader has applied, until `visit` returns true; returns true if
 * it did. Those of calls (DT_JMPREL) come first, then the others (DT_RELA) without its first ones,
 * the relative ones (DT_RELACOUNT), which name no symbol. Leaves out a table that is not in one
 * readable segment. Is inline so that the compiler makes a loop of it and the visitor. */
static inline bool
dynamic_relocations_visit(const struct object_segments *segments,
                          const struct dynamic_object *object,
                          bool (*visit)(const ElfW(Rela) * relocation, void *arg), void *arg) {
    const struct {
        int64_t tag;
        int64_t size_tag;
        size_t first;
    } tables[] = {{DT_JMPREL, DT_PLTRELSZ, 0},
                  {DT_RELA, DT_RELASZ, dynamic_number(object, DT_RELACOUNT)}};
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        const size_t size = dynamic_number(object, tables[i].size_tag);
        const ElfW(Rela) *const table = (const ElfW(Rela) *)dynamic_address(object, tables[i].tag);
        if (!table || !object_is_readable(segments, (uintptr_t)table, size))
            continue;
        for (size_t k = tables[i].first; k < size / sizeof *table; k++)
            if (visit(&table[k], arg))
                return true;
    }
    return false;
}

/* Returns the hash of a name in a table of DT_GNU_HASH (Bernstein's). */
static inline uint32_t dynamic_gnu_hash(const char *name) {
    uint32_t hash = 5381;
    for (; *name; name++)
        hash = hash * 33 + (unsigned char)*name;
    return hash;
}

#endif
