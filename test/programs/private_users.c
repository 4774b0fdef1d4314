/* Acts as systemd's child before it executes a service with PrivateMounts=, RootDirectory= and
 * PrivateUsers=: gets its own mounts, another root, then a user namespace whose ids another process
 * maps, then another user. Works before and after. If a step fails, its status is systemd's: 226
 * for the mounts and the root, 217 for the users.
 *
 * usage: private_users ROOT chroot|pivot_root BEFORE_MS AFTER_MS; the folder ROOT/proc must exist.
 */
#define _GNU_SOURCE
#include "cpu_work.h"

#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { EXIT_USER = 217, EXIT_NAMESPACE = 226, USER = 65534 };

NOIPA static void burns_before(uint64_t milliseconds) {
    WORK_FOR(milliseconds * NS_PER_MS);
}

NOIPA static void burns_in_namespace(uint64_t milliseconds) {
    WORK_FOR(milliseconds * NS_PER_MS);
}

static int change_root(const char *root, const char *how) {
    if (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount(root, root, NULL, MS_BIND | MS_REC, NULL) != 0 || chdir(root) != 0 ||
        mount("proc", "proc", "proc", 0, NULL) != 0)
        return -1;
    if (strcmp(how, "pivot_root") == 0)
        return syscall(SYS_pivot_root, ".", ".") != 0 || umount2(".", MNT_DETACH) != 0 ? -1
                                                                                       : chdir("/");
    return mount(".", "/", NULL, MS_MOVE, NULL) != 0 || chroot(".") != 0 ? -1 : chdir("/");
}

static void write_map(int folder, const char *file) {
    static const char map[] = "0 0 1\n65534 65534 1\n";
    const int opened = openat(folder, file, O_WRONLY);
    if (opened < 0 || write(opened, map, sizeof map - 1) < 0)
        _exit(1);
    close(opened);
}

/* Maps the ids in a child, which is still in the namespace that may do so. The parent closes its
 * end of the pipe `told` when it has the new namespace. */
static void map_users(int folder, int told) {
    char byte;
    if (read(told, &byte, 1) != 0)
        _exit(1);
    write_map(folder, "gid_map");
    write_map(folder, "uid_map");
    _exit(0);
}

static int enter_users(void) {
    char path[64];
    int ends[2];
    int status;
    snprintf(path, sizeof path, "/proc/%d", (int)getpid());
    const int folder = open(path, O_RDONLY | O_DIRECTORY);
    if (folder < 0 || pipe(ends) != 0)
        return -1;
    const pid_t child = fork();
    if (child == 0) {
        close(ends[1]);
        map_users(folder, ends[0]);
    }
    const int result = unshare(CLONE_NEWUSER);
    close(ends[1]);
    if (waitpid(child, &status, 0) != child || status != 0)
        return -1;
    return result;
}

int main(int argc, char **argv) {
    if (argc < 5)
        return 1;
    burns_before(strtoull(argv[3], NULL, 10));
    if (change_root(argv[1], argv[2]) != 0)
        return EXIT_NAMESPACE;
    if (enter_users() != 0 || setgroups(0, NULL) != 0 || setresgid(USER, USER, USER) != 0 ||
        setresuid(USER, USER, USER) != 0)
        return EXIT_USER;
    burns_in_namespace(strtoull(argv[4], NULL, 10));
    return 0;
}
