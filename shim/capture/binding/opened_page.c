#include "opened_page.h"

#include "bare_syscall.h"

#include <errno.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>

void opened_page_close(struct opened_page *opened) {
    if (opened->page && !opened->was_open)
        (void)mprotect((void *)opened->page, arch_page_bytes(), PROT_READ);
    opened->page = 0;
}

/* Returns true if the page is writable now: the program may have changed the protection that the
 * loader set. Makes the kernel write the word unchanged: on a read-only page that call fails, where
 * a store would fault. */
static bool is_writable(uintptr_t address) {
    const int saved = errno;
    const long woken = bare_syscall(SYS_futex, (long)address, FUTEX_WAKE_OP_PRIVATE, 0, 0,
                                    (long)address, FUTEX_OP(FUTEX_OP_OR, 0, FUTEX_OP_CMP_NE, 0));
    errno = saved;
    return woken >= 0;
}

bool opened_page_move(struct opened_page *opened, uintptr_t address, bool may_change) {
    const uintptr_t page = address & -arch_page_bytes();
    opened_page_close(opened);
    opened->was_open = is_writable(address);
    if (!opened->was_open &&
        (!may_change || mprotect((void *)page, arch_page_bytes(), PROT_READ | PROT_WRITE) != 0))
        return false;
    opened->page = page;
    return true;
}
