#include "object_tables.h"

#include "arch_object.h"

#include <elf.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

bool object_tables_span(const struct object_tables *tables, uintptr_t address, size_t size,
                        Elf64_Word flags) {
    const struct dl_phdr_info *const info = &tables->info;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *const segment = &info->dlpi_phdr[i];
        const uintptr_t offset = address - info->dlpi_addr - segment->p_vaddr;
        if (segment->p_type == PT_LOAD && (segment->p_flags & flags) == flags &&
            offset < segment->p_memsz && size <= segment->p_memsz - offset)
            return true;
    }
    return false;
}

static const Elf64_Phdr *header_of(const struct dl_phdr_info *info, Elf64_Word type) {
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == type)
            return &info->dlpi_phdr[i];
    return NULL;
}

bool object_tables_open(struct object_tables *tables, const struct dl_phdr_info *info) {
    const ElfW(Phdr) *const dynamic = header_of(info, PT_DYNAMIC);
    *tables = (struct object_tables){.info = *info};
    if (!dynamic ||
        !object_tables_span(tables, info->dlpi_addr + dynamic->p_vaddr, dynamic->p_memsz, PF_R))
        return false;
    tables->dynamic = (ElfW(Dyn) *)(info->dlpi_addr + dynamic->p_vaddr);
    const size_t most = dynamic->p_memsz / sizeof *tables->dynamic;
    while (tables->count < most && tables->dynamic[tables->count].d_tag != DT_NULL)
        tables->count++;
    return tables->count < most;
}

/* Searches backwards: of several entries with one tag the loader keeps the last. */
Elf64_Dyn *object_tables_entry(const struct object_tables *tables, Elf64_Sxword tag) {
    for (size_t i = tables->count; i-- > 0;)
        if (tables->dynamic[i].d_tag == tag)
            return &tables->dynamic[i];
    return NULL;
}

/* Adds the base to an offset; the loader has already done so for most pointers. */
static uintptr_t address_in(const struct object_tables *tables, Elf64_Sxword tag, size_t size) {
    const ElfW(Dyn) *const entry = object_tables_entry(tables, tag);
    const uintptr_t base = tables->info.dlpi_addr;
    if (!entry)
        return 0;
    const uintptr_t pointer = entry->d_un.d_ptr;
    const uintptr_t address = pointer < base ? base + pointer : pointer;
    return object_tables_span(tables, address, size, PF_R) ? address : 0;
}

static size_t dynamic_value(const struct object_tables *tables, Elf64_Sxword tag) {
    const ElfW(Dyn) *const entry = object_tables_entry(tables, tag);
    return entry ? entry->d_un.d_val : 0;
}

/* --- names --- */

/* Returns NULL if there is no such string. */
static const char *string_at(const struct object_tables *tables, size_t offset) {
    const size_t size = dynamic_value(tables, DT_STRSZ);
    const char *const strings = (const char *)address_in(tables, DT_STRTAB, size);
    if (!strings || offset >= size || !memchr(strings + offset, 0, size - offset))
        return NULL;
    return strings + offset;
}

const char *object_tables_soname(const struct object_tables *tables) {
    const ElfW(Dyn) *const entry = object_tables_entry(tables, DT_SONAME);
    return entry ? string_at(tables, entry->d_un.d_val) : NULL;
}

bool object_tables_need(const struct object_tables *tables, const char *soname) {
    for (size_t i = 0; i < tables->count; i++) {
        const ElfW(Dyn) *const entry = &tables->dynamic[i];
        const char *const needed =
            entry->d_tag == DT_NEEDED ? string_at(tables, entry->d_un.d_val) : NULL;
        if (needed && strcmp(needed, soname) == 0)
            return true;
    }
    return false;
}

/* --- imports --- */

static bool imports_name(const struct object_tables *tables, const ElfW(Rela) * relocation,
                         const char *name) {
    const uintptr_t symbols = address_in(tables, DT_SYMTAB, sizeof(ElfW(Sym)));
    const uintptr_t address = symbols + ELF64_R_SYM(relocation->r_info) * sizeof(ElfW(Sym));
    if (!symbols || !object_tables_span(tables, address, sizeof(ElfW(Sym)), PF_R))
        return false;
    const ElfW(Sym) *const symbol = (const ElfW(Sym) *)address;
    const char *const called =
        symbol->st_shndx == SHN_UNDEF ? string_at(tables, symbol->st_name) : NULL;
    return called && strcmp(called, name) == 0;
}

static uintptr_t *find_slot(const struct object_tables *tables, Elf64_Sxword table,
                            Elf64_Sxword size_tag, const char *name) {
    const size_t size = dynamic_value(tables, size_tag);
    const ElfW(Rela) *const first = (const ElfW(Rela) *)address_in(tables, table, size);
    for (size_t i = 0; first && i < size / sizeof *first; i++) {
        const uint64_t type = ELF64_R_TYPE(first[i].r_info);
        const bool holds_function =
            (type == ARCH_RELOCATION_PLT || type == ARCH_RELOCATION_GOT) && !first[i].r_addend;
        const uintptr_t slot = tables->info.dlpi_addr + first[i].r_offset;
        if (holds_function && imports_name(tables, &first[i], name) &&
            slot % sizeof(uintptr_t) == 0 &&
            object_tables_span(tables, slot, sizeof(uintptr_t), PF_R | PF_W))
            return (uintptr_t *)slot;
    }
    return NULL;
}

uintptr_t *object_tables_import(const struct object_tables *tables, const char *name) {
    uintptr_t *const slot = find_slot(tables, DT_JMPREL, DT_PLTRELSZ, name);
    return slot ? slot : find_slot(tables, DT_RELA, DT_RELASZ, name);
}

/* Holds the parts of an object by which its relocations name symbols. */
struct symbol_names {
    const ElfW(Sym) * symbols;
    const char *strings;
    size_t string_size;
};

static const char *find_reference(const struct object_tables *tables, const struct symbol_names *in,
                                  Elf64_Sxword table, Elf64_Sxword size_tag,
                                  const char *const *names) {
    const size_t size = dynamic_value(tables, size_tag);
    const ElfW(Rela) *const first = (const ElfW(Rela) *)address_in(tables, table, size);
    for (size_t i = 0; first && i < size / sizeof *first; i++) {
        const ElfW(Sym) *const symbol = in->symbols + ELF64_R_SYM(first[i].r_info);
        if (symbol == in->symbols || /* no symbol, as in most relocations */
            !object_tables_span(tables, (uintptr_t)symbol, sizeof *symbol, PF_R) ||
            symbol->st_shndx != SHN_UNDEF)
            continue;
        for (size_t k = 0; names[k]; k++) {
            const size_t length = strlen(names[k]) + 1;
            if (symbol->st_name < in->string_size && length <= in->string_size - symbol->st_name &&
                memcmp(in->strings + symbol->st_name, names[k], length) == 0)
                return names[k];
        }
    }
    return NULL;
}

const char *object_tables_refer(const struct object_tables *tables, const char *const *names) {
    const size_t size = dynamic_value(tables, DT_STRSZ);
    const struct symbol_names in = {
        .symbols = (const ElfW(Sym) *)address_in(tables, DT_SYMTAB, sizeof(ElfW(Sym))),
        .strings = (const char *)address_in(tables, DT_STRTAB, size),
        .string_size = size};
    if (!in.symbols || !in.strings)
        return NULL;
    const char *const called = find_reference(tables, &in, DT_JMPREL, DT_PLTRELSZ, names);
    return called ? called : find_reference(tables, &in, DT_RELA, DT_RELASZ, names);
}

/* --- changing --- */

/* Covers the loader's range: from the page in which the part begins to the last that it fills. */
static bool object_tables_protect(const struct object_tables *tables, int protection) {
    const ElfW(Phdr) *const part = header_of(&tables->info, PT_GNU_RELRO);
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    if (!part)
        return true;
    const uintptr_t start = (tables->info.dlpi_addr + part->p_vaddr) & -page;
    const uintptr_t end = (tables->info.dlpi_addr + part->p_vaddr + part->p_memsz) & -page;
    return start >= end || mprotect((void *)start, end - start, protection) == 0;
}

bool object_tables_unlock(const struct object_tables *tables) {
    return object_tables_protect(tables, PROT_READ | PROT_WRITE);
}

void object_tables_lock(const struct object_tables *tables) {
    (void)object_tables_protect(tables, PROT_READ);
}
