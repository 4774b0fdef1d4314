/* Acts as container runtimes do: as soon as main begins, it makes a child by a bare clone(2). The
 * child gives up its groups, for which libc goes through its list of threads.
 *
 * usage: clones_at_once syscall|clone
 *
 * Prints how the child ended. */
#define _GNU_SOURCE
#include "bare_clone.h"

#include <grp.h>
#include <stdio.h>

static int child_main(void *unused) {
    (void)unused;
    alarm(5);
    _exit(setgroups(0, NULL) == 0 ? 3 : 4);
}

int main(int argc, char **argv) {
    const pid_t child = bare_clone(argc > 1 ? argv[1] : "", child_main);
    if (child == 0)
        child_main(NULL);
    tell_end_of(child);
    return 0;
}
