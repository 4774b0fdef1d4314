#include "object_symbols.h"

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* The dynamic loader's, for debuggers; musl has none of this name. */
#pragma weak _r_debug

enum { NO_SYMBOL = 0 }; /* STN_UNDEF */

struct symbols {
    const ElfW(Sym) * table;
    const char *strings;
    const uint32_t *gnu_hash; /* DT_GNU_HASH, or NULL */
    const uint32_t *hash;     /* DT_HASH, or NULL */
};

/* The loader has made addresses of the pointers, except in the vDSO. */
static const void *address(const struct link_map *object, uintptr_t pointer) {
    return (const void *)(pointer < object->l_addr ? object->l_addr + pointer : pointer);
}

static struct symbols symbols_of(const struct link_map *object) {
    struct symbols s = {NULL, NULL, NULL, NULL};
    for (const ElfW(Dyn) *entry = object->l_ld; entry && entry->d_tag != DT_NULL; entry++) {
        const void *const value = address(object, entry->d_un.d_ptr);
        if (entry->d_tag == DT_SYMTAB)
            s.table = value;
        if (entry->d_tag == DT_STRTAB)
            s.strings = value;
        if (entry->d_tag == DT_GNU_HASH)
            s.gnu_hash = value;
        if (entry->d_tag == DT_HASH)
            s.hash = value;
    }
    return s;
}

static bool is_definition(const struct symbols *s, uint32_t index, const char *name) {
    const ElfW(Sym) *const symbol = &s->table[index];
    return symbol->st_shndx != SHN_UNDEF && symbol->st_value != 0 &&
           strcmp(s->strings + symbol->st_name, name) == 0;
}

/* The table's layout: "The GNU hash table" in the System V gABI's extensions; buckets hold the
 * first symbol, chains the hashes, whose lowest bit ends a chain. */
static uint32_t find_by_gnu_hash(const struct symbols *s, const char *name) {
    const uint32_t buckets = s->gnu_hash[0];
    const uint32_t first = s->gnu_hash[1];
    const uint32_t *const bucket = s->gnu_hash + 4 + s->gnu_hash[2] * (sizeof(ElfW(Addr)) / 4);
    const uint32_t *const chain = bucket + buckets;
    uint32_t hash = 5381;
    for (const char *c = name; *c; c++)
        hash = hash * 33 + (unsigned char)*c;
    uint32_t index = buckets ? bucket[hash % buckets] : 0;
    if (index < first)
        return NO_SYMBOL;
    for (;; index++) {
        if ((chain[index - first] | 1) == (hash | 1) && is_definition(s, index, name))
            return index;
        if (chain[index - first] & 1)
            return NO_SYMBOL;
    }
}

static uint32_t find_by_hash(const struct symbols *s, const char *name) {
    for (uint32_t index = 1; index < s->hash[1]; index++)
        if (is_definition(s, index, name))
            return index;
    return NO_SYMBOL;
}

void *object_symbols_find(const struct link_map *object, const char *name) {
    const struct symbols s = symbols_of(object);
    uint32_t index = NO_SYMBOL;
    if (!s.table || !s.strings)
        return NULL;
    if (s.gnu_hash)
        index = find_by_gnu_hash(&s, name);
    else if (s.hash)
        index = find_by_hash(&s, name);
    return index == NO_SYMBOL ? NULL : (void *)(object->l_addr + s.table[index].st_value);
}

/* What an object asks of others stands before what it defines, which alone is in the GNU table. */
bool object_symbols_refers(const struct link_map *object, bool (*is_wanted)(const char *name)) {
    const struct symbols s = symbols_of(object);
    const uint32_t end = s.gnu_hash ? s.gnu_hash[1] : s.hash ? s.hash[1] : 0;
    for (uint32_t index = 1; s.table && s.strings && index < end; index++)
        if (is_wanted(s.strings + s.table[index].st_name))
            return true;
    return false;
}

/* Not by dl_iterate_phdr(): sanitizers intercept it, and are not ready yet when malloc is first
 * called. */
const struct link_map *object_symbols_own(void) {
    const struct link_map *object = &_r_debug ? _r_debug.r_map : NULL;
    while (object && object->l_ld != _DYNAMIC)
        object = object->l_next;
    return object;
}
