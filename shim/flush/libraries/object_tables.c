#include "object_tables.h"

#include "arch_object.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

bool object_tables_open(struct object_tables *tables, const struct dl_phdr_info *info) {
    tables->segments = object_segments_of(info);
    tables->dynamic = dynamic_object_of(&tables->segments);
    const ElfW(Phdr) *const header = object_header(&tables->segments, PT_DYNAMIC);
    return header &&
           object_is_readable(&tables->segments, (uintptr_t)tables->dynamic.entries,
                              header->p_memsz) &&
           tables->dynamic.count < header->p_memsz / sizeof *tables->dynamic.entries;
}

/* Returns the address of a table; 0 if the table is missing, or is not in the object. */
static uintptr_t table_at(const struct object_tables *tables, int64_t tag, size_t size) {
    const uintptr_t address = dynamic_address(&tables->dynamic, tag);
    return object_is_readable(&tables->segments, address, size) ? address : 0;
}

/* --- names --- */

/* Returns the string at an offset; NULL if there is none. */
static const char *string_at(const struct object_tables *tables, size_t offset) {
    const size_t size = dynamic_number(&tables->dynamic, DT_STRSZ);
    const char *const strings = (const char *)table_at(tables, DT_STRTAB, size);
    if (!strings || offset >= size || !memchr(strings + offset, 0, size - offset))
        return NULL;
    return strings + offset;
}

const char *object_tables_soname(const struct object_tables *tables) {
    const ElfW(Dyn) *const entry = dynamic_entry(&tables->dynamic, DT_SONAME);
    return entry ? string_at(tables, entry->d_un.d_val) : NULL;
}

bool object_tables_need(const struct object_tables *tables, const char *soname) {
    for (size_t i = 0; i < tables->dynamic.count; i++) {
        const ElfW(Dyn) *const entry = &tables->dynamic.entries[i];
        const char *const needed =
            entry->d_tag == DT_NEEDED ? string_at(tables, entry->d_un.d_val) : NULL;
        if (needed && strcmp(needed, soname) == 0)
            return true;
    }
    return false;
}

/* --- references --- */

/* Returns the slot with an address that a relocation fills; NULL: it fills none. */
static uintptr_t *slot_of(const struct object_tables *tables, const ElfW(Rela) * relocation) {
    const uint64_t type = ELF64_R_TYPE(relocation->r_info);
    const uintptr_t slot = tables->segments.bias + relocation->r_offset;
    const bool has_slot = (type == ARCH_RELOCATION_PLT || type == ARCH_RELOCATION_GOT ||
                           type == ARCH_RELOCATION_DATA) &&
                          !relocation->r_addend && slot % sizeof(uintptr_t) == 0 &&
                          object_has(&tables->segments, slot, sizeof(uintptr_t), PF_R | PF_W);
    return has_slot ? (uintptr_t *)slot : NULL;
}

/* Holds the parts of an object by which its relocations name symbols. */
struct symbol_names {
    const ElfW(Sym) * symbols;
    const char *strings;
    size_t string_bytes;
};

/* Reads the reference of a relocation. Returns false if the relocation names no symbol (most do
 * not), or its name is not in the object.
 */
static bool reference_of(const struct object_tables *tables, const struct symbol_names *in,
                         const ElfW(Rela) * relocation, struct object_reference *reference) {
    const ElfW(Sym) *const symbol = in->symbols + ELF64_R_SYM(relocation->r_info);
    if (symbol == in->symbols ||
        !object_is_readable(&tables->segments, (uintptr_t)symbol, sizeof *symbol) ||
        symbol->st_name >= in->string_bytes ||
        !memchr(in->strings + symbol->st_name, 0, in->string_bytes - symbol->st_name))
        return false;
    *reference = (struct object_reference){.name = in->strings + symbol->st_name,
                                           .is_import = symbol->st_shndx == SHN_UNDEF,
                                           .slot = slot_of(tables, relocation)};
    return true;
}

/* Passes the references of an object's relocations on. */
struct reference_visit {
    const struct object_tables *tables;
    struct symbol_names in;
    bool (*visit)(const struct object_reference *reference, void *arg);
    void *arg;
};

static bool visit_reference(const ElfW(Rela) * relocation, void *arg) {
    const struct reference_visit *const to = arg;
    struct object_reference reference;
    return reference_of(to->tables, &to->in, relocation, &reference) &&
           to->visit(&reference, to->arg);
}

bool object_tables_visit(const struct object_tables *tables,
                         bool (*visit)(const struct object_reference *reference, void *arg),
                         void *arg) {
    const size_t string_bytes = dynamic_number(&tables->dynamic, DT_STRSZ);
    const struct symbol_names in = {
        .symbols = (const ElfW(Sym) *)table_at(tables, DT_SYMTAB, sizeof(ElfW(Sym))),
        .strings = (const char *)table_at(tables, DT_STRTAB, string_bytes),
        .string_bytes = string_bytes};
    struct reference_visit to = {tables, in, visit, arg};
    return in.symbols && in.strings &&
           dynamic_relocations_visit(&tables->segments, &tables->dynamic, visit_reference, &to);
}

struct import_search {
    const char *const *names; /* the names; the last is NULL */
    bool needs_slot;
    struct object_reference found;
};

static bool is_sought_import(const struct object_reference *reference, void *arg) {
    struct import_search *const search = arg;
    if (!reference->is_import || (search->needs_slot && !reference->slot))
        return false;
    for (size_t k = 0; search->names[k]; k++) {
        if (strcmp(reference->name, search->names[k]) != 0)
            continue;
        search->found = *reference;
        search->found.name = search->names[k];
        return true;
    }
    return false;
}

uintptr_t *object_tables_import(const struct object_tables *tables, const char *name) {
    const char *const names[] = {name, NULL};
    struct import_search search = {.names = names, .needs_slot = true};
    (void)object_tables_visit(tables, is_sought_import, &search);
    return search.found.slot;
}

const char *object_tables_refer(const struct object_tables *tables, const char *const *names) {
    struct import_search search = {.names = names};
    (void)object_tables_visit(tables, is_sought_import, &search);
    return search.found.name;
}

/* --- changing --- */

/* Changes the protection of the loader's range: from the page in which the part begins to the last
 * page that it fills. */
static bool object_tables_protect(const struct object_tables *tables, int protection) {
    const ElfW(Phdr) *const part = object_header(&tables->segments, PT_GNU_RELRO);
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    if (!part)
        return true;
    const uintptr_t start = (tables->segments.bias + part->p_vaddr) & -page;
    const uintptr_t end = (tables->segments.bias + part->p_vaddr + part->p_memsz) & -page;
    return start >= end || mprotect((void *)start, end - start, protection) == 0;
}

bool object_tables_unlock(const struct object_tables *tables) {
    return object_tables_protect(tables, PROT_READ | PROT_WRITE);
}

void object_tables_lock(const struct object_tables *tables) {
    (void)object_tables_protect(tables, PROT_READ);
}
