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

static bool is_one_of(const char *name, const char *const *names, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (name[0] == names[i][0] && strcmp(name, names[i]) == 0)
            return true;
    return false;
}

bool own_exports_withdraw(const char *const *names, size_t count) {
    /* both linkers put .dynstr behind .dynsym, in the same segment */
    ElfW(Sym) *const table = (void *)dynamic_entry(DT_SYMTAB);
    const char *const strings = (const void *)dynamic_entry(DT_STRTAB);
    const uintptr_t page = (uintptr_t)table & ~(uintptr_t)4095;
    const size_t size = ((uintptr_t)strings + 4095 - page) & ~(size_t)4095;
    if (count == 0)
        return true;
    if (!table || mprotect((void *)page, size, PROT_READ | PROT_WRITE) != 0)
        return false;
    for (ElfW(Sym) *symbol = table; (const char *)(symbol + 1) <= strings; symbol++)
        if (symbol->st_shndx != SHN_UNDEF && is_one_of(strings + symbol->st_name, names, count))
            symbol->st_value = 0;
    mprotect((void *)page, size, PROT_READ);
    return true;
}
