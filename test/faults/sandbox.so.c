/* Is preloaded: builds a sandbox around the program before main. It does so before the profiler's
 * constructor if it comes behind the profiler in LD_PRELOAD, and after it if it comes in front.
 *
 * - SANDBOX_ALLOW: numbers of system calls, with commas; the sandbox refuses every other call;
 *   unset: there is no sandbox
 * - SANDBOX_ACTION: for a refused call: "errno": it returns EPERM; "kill": the process dies of
 *   SIGSYS; "allow": it passes
 * - SANDBOX_THREADS: "all": the sandbox holds for every thread that there is already; otherwise for
 *   the calling one
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/audit.h>
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
    for (const char *at = numbers; *at && length < 2 * MAX_CALLS; at++) {
        char *end;
        const unsigned number = (unsigned)strtoul(at, &end, 10);
        add((struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1));
        add((struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
        if (*(at = end) != ',')
            break;
    }
}

static int is(const char *variable, const char *value) {
    const char *const found = getenv(variable);
    return found && strcmp(found, value) == 0;
}

__attribute__((constructor)) static void build(void) {
    const char *const numbers = getenv("SANDBOX_ALLOW");
    if (!numbers)
        return;
    const unsigned refuse = is("SANDBOX_ACTION", "kill")    ? SECCOMP_RET_KILL_PROCESS
                            : is("SANDBOX_ACTION", "allow") ? SECCOMP_RET_ALLOW
                                                            : SECCOMP_RET_ERRNO | EPERM;
    const unsigned flags = is("SANDBOX_THREADS", "all") ? SECCOMP_FILTER_FLAG_TSYNC : 0;
    allow(numbers);
    add((struct sock_filter)BPF_STMT(BPF_RET | BPF_K, refuse));
    const struct sock_fprog program = {.len = length, .filter = filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program) != 0) {
        perror("sandbox");
        _exit(3);
    }
}
