#include "definition.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

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
static bool find_by_gnu_hash(const struct symbols *s, const char *name) {
    const uint32_t buckets = s->gnu_hash[0];
    const uint32_t first = s->gnu_hash[1];
    const uint32_t *const bucket = s->gnu_hash + 4 + s->gnu_hash[2] * (sizeof(ElfW(Addr)) / 4);
    const uint32_t *const chain = bucket + buckets;
    uint32_t hash = 5381;
    for (const char *c = name; *c; c++)
        hash = hash * 33 + (unsigned char)*c;
    uint32_t index = buckets ? bucket[hash % buckets] : 0;
    if (index < first)
        return false;
    for (;; index++) {
        if ((chain[index - first] | 1) == (hash | 1) && is_definition(s, index, name))
            return true;
        if (chain[index - first] & 1)
            return false;
    }
}

static bool find_by_hash(const struct symbols *s, const char *name) {
    for (uint32_t index = 1; index < s->hash[1]; index++)
        if (is_definition(s, index, name))
            return true;
    return false;
}

static bool defines(const struct link_map *object, const char *name) {
    const struct symbols s = symbols_of(object);
    if (!s.table || !s.strings)
        return false;
    return s.gnu_hash ? find_by_gnu_hash(&s, name) : s.hash && find_by_hash(&s, name);
}

/* Not by dl_iterate_phdr(): sanitizers intercept it, and are not ready yet when malloc is first
 * called. */
bool definition_comes_before_ours(const char *name) {
    Dl_info found;
    struct link_map *own = NULL;
    if (!is_glibc() || !dladdr1(_DYNAMIC, &found, (void **)(void *)&own, RTLD_DL_LINKMAP))
        return false;
    for (const struct link_map *object = own->l_prev; object; object = object->l_prev)
        if (defines(object, name))
            return true;
    return false;
}
