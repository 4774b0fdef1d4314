#include "own_exports.h"

#include "capture/object_symbols.h"

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

static void withdraw(const char *name) {
    const struct link_map *const own = object_symbols_own();
    const ElfW(Sym) *const symbol = own ? object_symbols_entry(own, name) : NULL;
    if (symbol)
        memset((void *)(uintptr_t)symbol, 0, sizeof *symbol);
}

bool own_exports_withdraw(const char *const *names, size_t count) {
    /* both linkers put .dynstr behind .dynsym, in the same segment */
    const uintptr_t table = dynamic_entry(DT_SYMTAB);
    const uintptr_t strings = dynamic_entry(DT_STRTAB);
    const uintptr_t page = table & ~(uintptr_t)4095;
    const size_t size = (strings + 4095 - page) & ~(size_t)4095;
    if (count == 0)
        return true;
    if (!table || mprotect((void *)page, size, PROT_READ | PROT_WRITE) != 0)
        return false;
    for (size_t i = 0; i < count; i++)
        withdraw(names[i]);
    mprotect((void *)page, size, PROT_READ);
    return true;
}
