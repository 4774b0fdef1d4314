/* Reads the symbol tables of every loaded object itself, as memray and other tools do, which put
 * their own functions in the place of those that they find. Prints each name that is defined (it
 * has a section) without a value, thread-local variables apart, and how many objects were read. */
#define _GNU_SOURCE
#include <elf.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>

struct table {
    const ElfW(Sym) * symbols;
    const char *strings;
    const uint32_t *hash;
};

static struct table table_of(const struct link_map *object) {
    struct table t = {NULL, NULL, NULL};
    for (const ElfW(Dyn) *entry = object->l_ld; entry->d_tag != DT_NULL; entry++) {
        const void *const value = (const void *)entry->d_un.d_ptr;
        if (entry->d_tag == DT_SYMTAB)
            t.symbols = value;
        if (entry->d_tag == DT_STRTAB)
            t.strings = value;
        if (entry->d_tag == DT_GNU_HASH)
            t.hash = value;
    }
    return t;
}

/* Returns the index behind the last symbol that the hash table reaches. */
static uint32_t end_of(const struct table *t) {
    const uint32_t *const bucket = t->hash + 4 + t->hash[2] * (sizeof(ElfW(Addr)) / 4);
    const uint32_t *const chain = bucket + t->hash[0];
    uint32_t last = 0;
    for (uint32_t i = 0; i < t->hash[0]; i++)
        last = bucket[i] > last ? bucket[i] : last;
    while (last >= t->hash[1] && !(chain[last - t->hash[1]] & 1))
        last++;
    return last + 1;
}

static void read_object(const struct link_map *object) {
    const struct table t = table_of(object);
    const uint32_t end = end_of(&t);
    for (uint32_t i = 1; i < end; i++) {
        const ElfW(Sym) *const symbol = &t.symbols[i];
        const char *const name = t.strings + symbol->st_name;
        const int has_section = symbol->st_shndx != SHN_UNDEF && symbol->st_shndx != SHN_ABS;
        if (has_section && symbol->st_value == 0 && ELF64_ST_TYPE(symbol->st_info) != STT_TLS)
            printf("%s: %s\n", object->l_name, name);
    }
}

int main(void) {
    unsigned read = 0;
    for (const struct link_map *object = _r_debug.r_map; object; object = object->l_next) {
        const struct table t = table_of(object);
        if (!t.hash || (uintptr_t)t.hash < object->l_addr) /* the vDSO */
            continue;
        read_object(object);
        read++;
    }
    printf("%u objects\n", read);
    return 0;
}
