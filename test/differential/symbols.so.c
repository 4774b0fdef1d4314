/* Is preloaded: looks up every name that any loaded object defines in the tables of the objects
 * behind this one, and compares the result with dlsym(RTLD_NEXT)'s. Appends the differences and the
 * count to the file that SYMBOLS names. */
#include "symbols/next_symbol.h"

#include <dlfcn.h>
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>

struct table {
    const ElfW(Sym) * symbols;
    const char *strings;
    const uint32_t *hash;
    const uint16_t *versions;
};

static struct table table_of(const struct link_map *object) {
    struct table t = {NULL, NULL, NULL, NULL};
    for (const ElfW(Dyn) *entry = object->l_ld; entry->d_tag != DT_NULL; entry++) {
        const void *const value = (const void *)entry->d_un.d_ptr;
        if (entry->d_tag == DT_SYMTAB)
            t.symbols = value;
        if (entry->d_tag == DT_STRTAB)
            t.strings = value;
        if (entry->d_tag == DT_GNU_HASH)
            t.hash = value;
        if (entry->d_tag == DT_VERSYM)
            t.versions = value;
    }
    return t;
}

/* Returns the index behind the last symbol: the chain of the highest bucket ends there. */
static uint32_t end_of(const struct table *t) {
    const uint32_t *const bucket = t->hash + 4 + t->hash[2] * (sizeof(ElfW(Addr)) / 4);
    uint32_t last = 0;
    for (uint32_t i = 0; i < t->hash[0]; i++)
        last = bucket[i] > last ? bucket[i] : last;
    const uint32_t *const chain = bucket + t->hash[0];
    while (last >= t->hash[1] && !(chain[last - t->hash[1]] & 1))
        last++;
    return last + 1;
}

static void compare(FILE *report, const char *name) {
    struct symbol symbol = {.name = name};
    next_symbols(&symbol, 1);
    void *const theirs = dlsym(RTLD_NEXT, name);
    if (symbol.address != theirs)
        fprintf(report, "%s: %p in %s, not %p\n", name, symbol.address,
                symbol.object ? symbol.object->l_name : "nothing", theirs);
}

__attribute__((constructor)) static void compare_all(void) {
    FILE *const report = getenv("SYMBOLS") ? fopen(getenv("SYMBOLS"), "a") : NULL;
    unsigned compared = 0;
    for (const struct link_map *object = object_symbols_first(); report && object;
         object = object->l_next) {
        const struct table t = table_of(object);
        if (!t.hash || (uintptr_t)t.hash < object->l_addr) /* the vDSO */
            continue;
        for (uint32_t i = t.hash[1]; i < end_of(&t); i++) {
            if (ELF64_ST_TYPE(t.symbols[i].st_info) == STT_TLS)
                continue;
            compare(report, t.strings + t.symbols[i].st_name);
            compared++;
        }
    }
    if (report) {
        fprintf(report, "compared %u\n", compared);
        fclose(report);
    }
}
