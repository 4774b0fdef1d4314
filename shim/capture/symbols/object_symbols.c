#include "object_symbols.h"

#include "arch_object.h"
#include "dynamic_object.h"

#include <elf.h>
#include <string.h>

/* Declares the dynamic loader's variable for debuggers as weak, because musl does not define it. */
#pragma weak _r_debug

enum {
    NO_SYMBOL = 0,            /* STN_UNDEF */
    NOT_THE_DEFAULT = 0x8000, /* VERSYM_HIDDEN in DT_VERSYM: a version for older programs */
    VERSION_NUMBER = 0x7fff,
    NO_VERSION = 0, /* VER_NDX_LOCAL */
};

struct tables {
    uintptr_t bias;
    const ElfW(Sym) * symbols;
    const char *strings;
    const uint16_t *versions;     /* DT_VERSYM, or NULL */
    const ElfW(Verdef) * defined; /* DT_VERDEF, or NULL */
    const uint32_t *gnu_hash;     /* DT_GNU_HASH, or NULL */
    const uint32_t *hash;         /* DT_HASH, or NULL */
    bool thread_local;            /* the lookup is for a thread-local variable */
    uint16_t version;             /* the version to find; NO_VERSION: the default */
};

static struct tables tables_of(const struct link_map *object) {
    const struct dynamic_object dynamic = dynamic_object_of_map(object);
    return (struct tables){.bias = object->l_addr,
                           .symbols = (const void *)dynamic_address(&dynamic, DT_SYMTAB),
                           .strings = (const void *)dynamic_address(&dynamic, DT_STRTAB),
                           .versions = (const void *)dynamic_address(&dynamic, DT_VERSYM),
                           .defined = (const void *)dynamic_address(&dynamic, DT_VERDEF),
                           .gnu_hash = (const void *)dynamic_address(&dynamic, DT_GNU_HASH),
                           .hash = (const void *)dynamic_address(&dynamic, DT_HASH)};
}

/* --- one symbol --- */

static bool has_address(unsigned type) {
    return type == STT_FUNC || type == STT_OBJECT || type == STT_NOTYPE || type == STT_COMMON ||
           type == STT_GNU_IFUNC;
}

/* Accepts value 0 for a thread-local variable, which may be the first of its block. */
static bool is_of_a_kind_to_find(const struct tables *t, const ElfW(Sym) * symbol) {
    const unsigned type = ELF64_ST_TYPE(symbol->st_info);
    const unsigned visibility = ELF64_ST_VISIBILITY(symbol->st_other);
    return ELF64_ST_BIND(symbol->st_info) != STB_LOCAL && visibility != STV_HIDDEN &&
           visibility != STV_INTERNAL &&
           (t->thread_local ? type == STT_TLS : has_address(type) && symbol->st_value != 0);
}

static bool is_of_the_version(const struct tables *t, uint32_t index) {
    if (t->version != NO_VERSION)
        return t->versions && (t->versions[index] & VERSION_NUMBER) == t->version;
    return !t->versions || !(t->versions[index] & NOT_THE_DEFAULT);
}

static bool is_definition(const struct tables *t, uint32_t index, const char *name) {
    const ElfW(Sym) *const symbol = &t->symbols[index];
    if (symbol->st_shndx == SHN_UNDEF || !is_of_a_kind_to_find(t, symbol))
        return false;
    if (!is_of_the_version(t, index))
        return false;
    return strcmp(t->strings + symbol->st_name, name) == 0;
}

static void *symbol_resolve(const struct tables *t, uint32_t index) {
    const ElfW(Sym) *const symbol = &t->symbols[index];
    const uintptr_t bias = symbol->st_shndx == SHN_ABS ? 0 : t->bias;
    void *const found = (void *)(bias + symbol->st_value);
    if (ELF64_ST_TYPE(symbol->st_info) != STT_GNU_IFUNC)
        return found;
    return arch_resolve(found);
}

/* --- the two kinds of hash table --- */

/* Searches the GNU hash table, which has a Bloom filter, then buckets, each with its first symbol,
 * then chains of hashes, whose lowest bit ends a chain (System V gABI's extensions, "The GNU hash
 * table"). */
static uint32_t find_by_gnu_hash(const struct tables *t, const char *name, uint32_t hash) {
    enum { WORD_BITS = 8 * sizeof(ElfW(Addr)) };
    const uint32_t buckets = t->gnu_hash[0];
    const uint32_t first = t->gnu_hash[1];
    const uint32_t words = t->gnu_hash[2];
    const ElfW(Addr) *const filter = (const void *)(t->gnu_hash + 4);
    const uint32_t *const bucket = (const void *)(filter + words);
    const uint32_t *const chain = bucket + buckets;
    if (buckets == 0 || words == 0)
        return NO_SYMBOL;
    const ElfW(Addr) word = filter[hash / WORD_BITS & (words - 1)];
    if (!(word >> hash % WORD_BITS & word >> (hash >> t->gnu_hash[3]) % WORD_BITS & 1))
        return NO_SYMBOL;
    uint32_t index = bucket[hash % buckets];
    if (index < first)
        return NO_SYMBOL;
    for (;; index++) {
        if ((chain[index - first] | 1) == (hash | 1) && is_definition(t, index, name))
            return index;
        if (chain[index - first] & 1)
            return NO_SYMBOL;
    }
}

/* Searches by DT_HASH, whose second word is the number of symbols: few objects have only this
 * table. */
static uint32_t find_in_all(const struct tables *t, const char *name) {
    for (uint32_t index = 1; index < t->hash[1]; index++)
        if (is_definition(t, index, name))
            return index;
    return NO_SYMBOL;
}

static uint32_t object_symbol_find(const struct tables *t, struct symbol *symbol) {
    if (!t->symbols || !t->strings)
        return NO_SYMBOL;
    if (!symbol->hash)
        symbol->hash = dynamic_gnu_hash(symbol->name);
    if (t->gnu_hash)
        return find_by_gnu_hash(t, symbol->name, symbol->hash);
    return t->hash ? find_in_all(t, symbol->name) : NO_SYMBOL;
}

/* --- versions --- */

static uint16_t number_of_version(const struct tables *t, const char *version) {
    const ElfW(Verdef) *definition = t->defined;
    while (definition && t->strings) {
        const ElfW(Verdaux) *const name =
            (const void *)((const char *)definition + definition->vd_aux);
        if (strcmp(t->strings + name->vda_name, version) == 0)
            return definition->vd_ndx & VERSION_NUMBER;
        if (definition->vd_next == 0)
            break;
        definition = (const void *)((const char *)definition + definition->vd_next);
    }
    return NO_VERSION;
}

bool object_symbols_defines_version(const struct link_map *object, const char *version) {
    const struct tables t = tables_of(object);
    return number_of_version(&t, version) != NO_VERSION;
}

void *object_symbols_of_version(const struct link_map *object, const char *name,
                                const char *version) {
    struct tables t = tables_of(object);
    struct symbol symbol = {.name = name};
    t.version = number_of_version(&t, version);
    const uint32_t index = t.version == NO_VERSION ? NO_SYMBOL : object_symbol_find(&t, &symbol);
    return index == NO_SYMBOL ? NULL : symbol_resolve(&t, index);
}

/* --- interface --- */

void object_symbols_find_all(const struct link_map *object, struct symbol *symbols, size_t count) {
    const struct tables t = tables_of(object);
    for (size_t i = 0; i < count; i++) {
        const uint32_t index = symbols[i].address ? NO_SYMBOL : object_symbol_find(&t, &symbols[i]);
        if (index == NO_SYMBOL)
            continue;
        symbols[i].address = symbol_resolve(&t, index);
        symbols[i].object = object;
        symbols[i].entry = &t.symbols[index];
    }
}

void object_symbols_find_entries(const struct link_map *object, struct symbol *symbols,
                                 size_t count) {
    const struct tables t = tables_of(object);
    for (size_t i = 0; i < count; i++) {
        const uint32_t index = symbols[i].entry ? NO_SYMBOL : object_symbol_find(&t, &symbols[i]);
        if (index == NO_SYMBOL)
            continue;
        symbols[i].object = object;
        symbols[i].entry = &t.symbols[index];
    }
}

const ElfW(Sym) * object_symbols_entry(const struct link_map *object, const char *name) {
    const struct tables t = tables_of(object);
    struct symbol symbol = {.name = name};
    const uint32_t index = object_symbol_find(&t, &symbol);
    return index == NO_SYMBOL ? NULL : &t.symbols[index];
}

const ElfW(Sym) * object_symbols_thread_local(const struct link_map *object, const char *name) {
    struct tables t = tables_of(object);
    struct symbol symbol = {.name = name};
    t.thread_local = true;
    const uint32_t index = object_symbol_find(&t, &symbol);
    return index == NO_SYMBOL ? NULL : &t.symbols[index];
}

bool object_symbols_defines(const struct link_map *object, const char *name) {
    return object_symbols_entry(object, name) != NULL;
}

/* Scans the symbols that an object imports: they precede the symbols that it defines, which alone
 * are in the GNU table. */
bool object_symbols_refers(const struct link_map *object, bool (*is_wanted)(const char *name)) {
    const struct tables t = tables_of(object);
    const uint32_t end = t.gnu_hash ? t.gnu_hash[1] : t.hash ? t.hash[1] : 0;
    for (uint32_t index = 1; t.symbols && t.strings && index < end; index++)
        if (is_wanted(t.strings + t.symbols[index].st_name))
            return true;
    return false;
}

/* Does not use dl_iterate_phdr(): sanitizers intercept it, and are not ready yet when malloc is
 * first called. */
const struct link_map *object_symbols_first(void) {
    return &_r_debug ? _r_debug.r_map : NULL;
}

struct link_map object_symbols_map(const struct dl_phdr_info *info) {
    const struct object_segments segments = object_segments_of(info);
    const ElfW(Phdr) *const dynamic = object_header(&segments, PT_DYNAMIC);
    return (struct link_map){.l_addr = info->dlpi_addr,
                             .l_ld = dynamic ? (ElfW(Dyn) *)(info->dlpi_addr + dynamic->p_vaddr)
                                             : NULL};
}

const struct link_map *object_symbols_own(void) {
    const struct link_map *object = object_symbols_first();
    while (object && object->l_ld != _DYNAMIC)
        object = object->l_next;
    return object;
}
