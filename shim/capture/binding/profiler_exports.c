#include "profiler_exports.h"

#include "arch_memory.h"
#include "bare_syscall.h"
#include "dynamic_object.h"

#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

/* Changes the protection by a bare system call, because a preload may have replaced libc's
 * mprotect. */
static bool profiler_exports_protect(uintptr_t page, size_t size, int protection) {
    return bare_syscall(SYS_mprotect, (long)page, (long)size, protection, 0, 0, 0) == 0;
}

bool profiler_exports_unexport(struct symbol *symbols, size_t count) {
    const struct link_map *const own = object_symbols_own();
    if (!own || count == 0)
        return count == 0;
    const struct dynamic_object dynamic = dynamic_object_of_map(own);
    const size_t bytes = arch_page_bytes();
    const uintptr_t page = dynamic_address(&dynamic, DT_SYMTAB) & -bytes;
    /* both linkers put .dynstr behind .dynsym, in the same segment */
    const size_t size = (dynamic_address(&dynamic, DT_STRTAB) + bytes - 1 - page) & -bytes;
    object_symbols_find_all(own, symbols, count);
    if (!profiler_exports_protect(page, size, PROT_READ | PROT_WRITE))
        return false;
    for (size_t i = 0; i < count; i++)
        if (symbols[i].entry)
            memset((void *)(uintptr_t)symbols[i].entry, 0, sizeof *symbols[i].entry);
    (void)profiler_exports_protect(page, size, PROT_READ);
    return true;
}
