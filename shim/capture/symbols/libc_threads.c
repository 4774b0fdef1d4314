#include "libc_threads.h"

#include "kernel/first_page.h"
#include "next_symbol.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Points to libc's own variable, not to the executable's copy, which only programs read. NULL:
 * glibc before 2.32, which keeps this state elsewhere. */
IN_FIRST_PAGE static char *single_threaded; /* written once, before there is a second thread */

void libc_threads_finish_init(void) {
    single_threaded = next_symbol("__libc_single_threaded");
}

/* Counts the links of the folder /proc/self/task, of which two are its own. This needs no
 * descriptor. */
unsigned libc_threads_count(void) {
    struct stat status;
    const int saved = errno;
    const bool has_count = syscall(SYS_newfstatat, AT_FDCWD, "/proc/self/task", &status, 0) == 0;
    errno = saved;
    return has_count && status.st_nlink > 2 ? (unsigned)status.st_nlink - 2 : 0;
}

void libc_set_single_threaded(bool single) {
    /* pairs with no acquire: libc and libstdc++ read the variable by plain loads. The system call
     * that starts a second thread comes after the store */
    if (single_threaded)
        __atomic_store_n(single_threaded, single, __ATOMIC_SEQ_CST);
}
