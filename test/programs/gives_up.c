/* Gives up rights of its one thread, in one way, and prints what another thread of the process
 * still has: a line for each of these fields of /proc/self/task/TID/status in which it has more
 * than the main thread, "follows" where there is none, "alone" where there is no other thread.
 *
 * usage: gives_up WAY BEFORE_MS AFTER_MS
 *
 * Works for BEFORE_MS and AFTER_MS. A way with "-bare" calls no function of libc; such a way, and
 * one with "serves", reads the fields after its work, too.
 */
#define _GNU_SOURCE
#include "cpu_work.h"

#include <dirent.h>
#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* no header of libc's declares it */
int capset(cap_user_header_t header, const cap_user_data_t data);

enum { USER = 65534 };

NOIPA static void burns_before(uint64_t milliseconds) {
    WORK_FOR(milliseconds * NS_PER_MS);
}

NOIPA static void burns_after(uint64_t milliseconds) {
    WORK_FOR(milliseconds * NS_PER_MS);
}

/* --- rights of a thread --- */

struct rights {
    unsigned long ids[8]; /* real, effective, saved, file system: user, then group */
    unsigned long inheritable, permitted, effective, filters, no_new_privileges;
    char namespaces[3][64];
};

static void read_line(const char *line, struct rights *rights) {
    unsigned long *const u = rights->ids;
    unsigned long *const g = rights->ids + 4;
    if (sscanf(line, "Uid: %lu %lu %lu %lu", u, u + 1, u + 2, u + 3) != 4 &&
        sscanf(line, "Gid: %lu %lu %lu %lu", g, g + 1, g + 2, g + 3) != 4 &&
        sscanf(line, "CapInh: %lx", &rights->inheritable) != 1 &&
        sscanf(line, "CapPrm: %lx", &rights->permitted) != 1 &&
        sscanf(line, "CapEff: %lx", &rights->effective) != 1 &&
        sscanf(line, "NoNewPrivs: %lu", &rights->no_new_privileges) != 1)
        sscanf(line, "Seccomp_filters: %lu", &rights->filters);
}

static bool read_rights(const char *thread, struct rights *rights) {
    static const char *const kinds[] = {"mnt", "net", "user"};
    char path[128];
    char line[512];
    memset(rights, 0, sizeof *rights);
    snprintf(path, sizeof path, "/proc/self/task/%s/status", thread);
    FILE *const file = fopen(path, "re");
    if (!file)
        return false;
    while (fgets(line, sizeof line, file))
        read_line(line, rights);
    fclose(file);
    for (int i = 0; i < 3; i++) {
        snprintf(path, sizeof path, "/proc/self/task/%s/ns/%s", thread, kinds[i]);
        if (readlink(path, rights->namespaces[i], sizeof rights->namespaces[i] - 1) < 0)
            return false;
    }
    return true;
}

static bool has_no_more(const struct rights *own, const struct rights *other) {
    bool same = true;
    if (memcmp(own->ids, other->ids, sizeof own->ids) != 0)
        same = puts("other ids") < 0;
    if ((other->permitted & ~own->permitted) || (other->effective & ~own->permitted) ||
        (other->inheritable & ~own->inheritable))
        same = printf("more capabilities: %lx, not %lx\n", other->permitted, own->permitted) < 0;
    if (other->filters < own->filters)
        same = puts("fewer filters") < 0;
    if (other->no_new_privileges < own->no_new_privileges)
        same = puts("new privileges") < 0;
    if (memcmp(own->namespaces, other->namespaces, sizeof own->namespaces) != 0)
        same = puts("other namespaces") < 0;
    return same;
}

static void compare(void) {
    struct rights own;
    struct rights other;
    char id[16];
    int others = 0;
    bool follows = true;
    DIR *const tasks = opendir("/proc/self/task");
    snprintf(id, sizeof id, "%d", (int)getpid());
    if (!tasks || !read_rights(id, &own)) {
        puts("nothing is known");
        return;
    }
    for (struct dirent *task; (task = readdir(tasks));) {
        if (task->d_name[0] == '.' || strcmp(task->d_name, id) == 0 ||
            !read_rights(task->d_name, &other))
            continue;
        others++;
        follows = has_no_more(&own, &other) && follows;
    }
    closedir(tasks);
    if (!others)
        puts("alone");
    else if (follows)
        puts("follows");
}

/* --- ways --- */

static long bare(long number, long a, long b, long c) {
    long result;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c)
                     : "rcx", "r11", "memory");
    return result;
}

static bool is_bare(const char *way) {
    return strstr(way, "-bare") != NULL;
}

static bool serves(const char *way) {
    return strncmp(way, "serves", 6) == 0;
}

/* Keeps the capability `kept` alone. */
static long lower(const char *way, uint32_t kept) {
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct data[2] = {{kept, kept, 0}, {0, 0, 0}};
    if (is_bare(way))
        return bare(SYS_capset, (long)&header, (long)data, 0);
    if (strstr(way, "-number"))
        return syscall(SYS_capset, &header, data);
    return capset(&header, data);
}

static long filter(const char *way) {
    struct sock_filter steps[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_acct, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 0, 1),
        BPF_STMT(BPF_RET | BPF_K,
                 strstr(way, "kill") ? SECCOMP_RET_KILL_PROCESS : SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof steps / sizeof *steps, steps};
    if (is_bare(way))
        return bare(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, (long)&program);
    if (strstr(way, "-number"))
        return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program);
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0);
}

static long landlock(void) {
    struct landlock_ruleset_attr rules = {.handled_access_fs = LANDLOCK_ACCESS_FS_WRITE_FILE};
    const long made = syscall(SYS_landlock_create_ruleset, &rules, sizeof rules, 0);
    return made < 0 ? made : syscall(SYS_landlock_restrict_self, made, 0);
}

/* Serves another user for a while: the saved ids are root's. */
static long serve_another(const char *way) {
    const long failed =
        strstr(way, "-number")
            ? syscall(SYS_setresgid, -1, USER, 0) | syscall(SYS_setresuid, -1, USER, 0)
            : bare(SYS_setresgid, -1, USER, 0) | bare(SYS_setresuid, -1, USER, 0);
    return failed | prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
}

static long serve_no_client(void) {
    return bare(SYS_setresuid, -1, 0, -1) | bare(SYS_setresgid, -1, 0, -1);
}

/* Serves one user after another, and then becomes one for good, by libc's functions. */
static long serve_and_leave(void) {
    long failed = 0;
    for (int i = 0; i < 6; i++) {
        failed |= serve_another("");
        burns_before(250);
        failed |= serve_no_client();
        if (i % 2)
            burns_before(250);
    }
    return failed | setgroups(0, NULL) | setresgid(USER, USER, USER) | setresuid(USER, USER, USER);
}

/* Acts as setpriv and capsh do: becomes another user, and keeps capabilities across the change. */
static long keep_capabilities(void) {
    static const uint32_t kept = 1u << CAP_SETUID | 1u << CAP_SETGID | 1u << CAP_NET_RAW;
    if (prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) != 0 || setresuid(USER, USER, USER) != 0)
        return -1;
    if (lower("", kept) != 0 || setgroups(0, NULL) != 0)
        return -1;
    return initgroups("root", 0) != 0 || setresgid(USER, USER, USER) != 0 || lower("", 0) != 0;
}

static long give_up(const char *way) {
    if (strncmp(way, "capset", 6) == 0)
        return lower(way, 0);
    if (strncmp(way, "filter", 6) == 0)
        return filter(way);
    if (strcmp(way, "privileges") == 0)
        return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (strcmp(way, "landlock") == 0)
        return landlock();
    if (strcmp(way, "user") == 0)
        return setgroups(0, NULL) | setgid(USER) | setuid(USER);
    if (strcmp(way, "user-number") == 0)
        return syscall(SYS_setresgid, USER, USER, USER) | syscall(SYS_setresuid, USER, USER, USER);
    if (strcmp(way, "user-bare") == 0)
        return bare(SYS_setresgid, USER, USER, USER) | bare(SYS_setresuid, USER, USER, USER);
    if (serves(way))
        return serve_another(way);
    if (strcmp(way, "leaves") == 0)
        return serve_and_leave();
    if (strcmp(way, "keep") == 0)
        return keep_capabilities();
    if (strcmp(way, "mounts") == 0)
        return unshare(CLONE_NEWNS);
    return strcmp(way, "network") == 0 ? unshare(CLONE_NEWNET) : -1;
}

int main(int argc, char **argv) {
    if (argc < 4)
        return 1;
    burns_before(strtoull(argv[2], NULL, 10));
    errno = 0;
    if (give_up(argv[1]) != 0) {
        puts(strerror(errno));
        return 2;
    }
    compare();
    burns_after(strtoull(argv[3], NULL, 10));
    if (is_bare(argv[1]) || serves(argv[1]))
        compare();
    if (serves(argv[1]) && prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) != 1)
        puts("dumps are forbidden");
    return 0;
}
