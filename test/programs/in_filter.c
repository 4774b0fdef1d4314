/* Puts a seccomp filter around a program before it starts, as a service manager or a container
 * does: every system call except the named ones kills the process.
 *
 * usage: in_filter NUMBER[:ERRNO],... [NAME=VALUE]... COMMAND [ARGUMENT]...
 * With an ERRNO the call fails with this error. The variables are set for the command alone. execve
 * itself must be among the calls.
 */
#define _GNU_SOURCE
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { MAX_CALLS = 500 };

static struct sock_filter filter[2 * MAX_CALLS + 2];
static unsigned short length;

static void add(struct sock_filter instruction) {
    filter[length++] = instruction;
}

static void allow(const char *numbers) {
    add((struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)));
    for (const char *at = numbers; at && length < 2 * MAX_CALLS; at = strchr(at, ',')) {
        at += *at == ',';
        char *end;
        const unsigned number = (unsigned)strtoul(at, &end, 10);
        const unsigned action =
            *end == ':' ? SECCOMP_RET_ERRNO | (unsigned)atoi(end + 1) : SECCOMP_RET_ALLOW;
        add((struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1));
        add((struct sock_filter)BPF_STMT(BPF_RET | BPF_K, action));
    }
    add((struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS));
}

int main(int argc, char **argv) {
    if (argc < 3)
        return 2;
    allow(argv[1]);
    const struct sock_fprog program = {.len = length, .filter = filter};
    char **command = argv + 2;
    while (*command && strchr(*command, '=') && **command != '/')
        putenv(*command++);
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) != 0) {
        perror("in_filter");
        return 3;
    }
    execv(command[0], command);
    perror(command[0]);
    return 3;
}
