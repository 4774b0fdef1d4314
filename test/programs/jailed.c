/* Changes its root and works there, allocating, for 1.2 s of CPU time.
 *
 * usage: jailed ROOT name|number|bare|mount self|child BEFORE_MS
 *
 * The change is made by chroot(), by syscall(), by an instruction of its own, or by mounts of its
 * own and pivot_root. child: in a forked child, whose status becomes the program's own. Before that
 * it works for BEFORE_MS.
 */
#define _GNU_SOURCE
#include "cpu_work.h"
#include "forked.h"

#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

NOIPA static void burns_before(uint64_t milliseconds) {
    WORK_FOR(milliseconds * NS_PER_MS);
}

NOIPA static void burns_in_jail(void) {
    for (int i = 0; i < 1200; i++) {
        void *volatile object = malloc(100000);
        WORK_FOR(NS_PER_MS);
        free(object);
    }
}

static int pivot(const char *root) {
    if (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount(root, root, NULL, MS_BIND | MS_REC, NULL) != 0 || chdir(root) != 0 ||
        syscall(SYS_pivot_root, ".", ".") != 0)
        return -1;
    return umount2(".", MNT_DETACH);
}

static int change_root(const char *root, const char *how) {
    long result;
    if (strcmp(how, "name") == 0)
        return chroot(root);
    if (strcmp(how, "number") == 0)
        return (int)syscall(SYS_chroot, root);
    if (strcmp(how, "mount") == 0)
        return pivot(root);
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(SYS_chroot), "D"(root)
                     : "rcx", "r11", "memory");
    return (int)result;
}

int main(int argc, char **argv) {
    int status = 0;
    if (argc < 5)
        return 1;
    burns_before(strtoull(argv[4], NULL, 10));
    const pid_t child = strcmp(argv[3], "child") == 0 ? fork_profiled() : 0;
    if (child > 0)
        return waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : 2;
    if (change_root(argv[1], argv[2]) != 0 || chdir("/") != 0)
        return 3;
    burns_in_jail();
    puts("jailed");
    return 0;
}
