#include "own_exports.h"

#include <elf.h>
#include <link.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

/* An entry of our dynamic section; the loader has made addresses of its pointers. */
static uintptr_t dynamic_entry(int64_t tag) {
    for (const ElfW(Dyn) *entry = _DYNAMIC; entry->d_tag != DT_NULL; entry++)
        if (entry->d_tag == tag)
            return entry->d_un.d_ptr;
    return 0;
}

/* Both linkers put .dynstr behind .dynsym, in the same segment. */
static ElfW(Sym) * find_symbol(const char *name) {
    ElfW(Sym) *const table = (void *)dynamic_entry(DT_SYMTAB);
    const char *const strings = (const void *)dynamic_entry(DT_STRTAB);
    for (ElfW(Sym) *symbol = table; symbol && (const char *)(symbol + 1) <= strings; symbol++)
        if (symbol->st_shndx != SHN_UNDEF && strcmp(strings + symbol->st_name, name) == 0)
            return symbol;
    return NULL;
}

bool own_exports_withdraw(const char *name) {
    ElfW(Sym) *const symbol = find_symbol(name);
    if (!symbol)
        return false;
    const uintptr_t page = (uintptr_t)symbol & ~(uintptr_t)4095;
    const size_t size = ((uintptr_t)(symbol + 1) + 4095 - page) & ~(size_t)4095;
    if (mprotect((void *)page, size, PROT_READ | PROT_WRITE) != 0)
        return false;
    symbol->st_value = 0;
    mprotect((void *)page, size, PROT_READ);
    return true;
}
