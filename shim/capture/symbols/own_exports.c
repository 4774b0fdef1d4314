#include "own_exports.h"

#include "arch_memory.h"
#include "bare_syscall.h"

#include <elf.h>
#include <link.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

/* An entry of our dynamic section; the loader has made addresses of its pointers. */
static uintptr_t dynamic_entry(int64_t tag) {
    for (const ElfW(Dyn) *entry = _DYNAMIC; entry->d_tag != DT_NULL; entry++)
        if (entry->d_tag == tag)
            return entry->d_un.d_ptr;
    return 0;
}

/* Not libc's function, of which a preload may have its own version. */
static bool own_exports_protect(uintptr_t page, size_t size, int protection) {
    return bare_syscall(SYS_mprotect, (long)page, (long)size, protection, 0, 0, 0) == 0;
}

bool own_exports_unexport(struct symbol *symbols, size_t count) {
    /* both linkers put .dynstr behind .dynsym, in the same segment */
    const uintptr_t table = dynamic_entry(DT_SYMTAB);
    const uintptr_t strings = dynamic_entry(DT_STRTAB);
    const size_t bytes = arch_page_bytes();
    const uintptr_t page = table & -bytes;
    const size_t size = (strings + bytes - 1 - page) & -bytes;
    const struct link_map *const own = object_symbols_own();
    if (!own || count == 0)
        return count == 0;
    object_symbols_find_all(own, symbols, count);
    if (!own_exports_protect(page, size, PROT_READ | PROT_WRITE))
        return false;
    for (size_t i = 0; i < count; i++)
        if (symbols[i].entry)
            memset((void *)(uintptr_t)symbols[i].entry, 0, sizeof *symbols[i].entry);
    (void)own_exports_protect(page, size, PROT_READ);
    return true;
}
