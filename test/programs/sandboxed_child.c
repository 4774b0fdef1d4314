/* Has a child that puts itself into a sandbox which lets it work and respond, and kills it for
 * anything else; the child works for so long, and ends. Prints how it ended.
 *
 * usage: sandboxed_child MILLISECONDS
 */
#define _GNU_SOURCE
#include "works.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define LET(number)                                                                                \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

/* Allows what such filters usually do: memory, time, signals, open descriptors; no thread, file or
 * socket.
 */
static void enter_sandbox(void) {
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        LET(SYS_read),
        LET(SYS_write),
        LET(SYS_close),
        LET(SYS_fstat),
        LET(SYS_newfstatat),
        LET(SYS_brk),
        LET(SYS_mmap),
        LET(SYS_munmap),
        LET(SYS_mremap),
        LET(SYS_mprotect),
        LET(SYS_madvise),
        LET(SYS_clock_gettime),
        LET(SYS_rt_sigaction),
        LET(SYS_rt_sigprocmask),
        LET(SYS_rt_sigreturn),
        LET(SYS_getpid),
        LET(SYS_gettid),
        LET(SYS_prctl),
        LET(SYS_futex),
        LET(SYS_getrandom),
        LET(SYS_timer_settime),
        LET(SYS_timer_delete),
        LET(SYS_exit),
        LET(SYS_exit_group),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
    };
    const struct sock_fprog program = {.len = sizeof filter / sizeof *filter, .filter = filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
        perror("sandboxed_child");
        _exit(3);
    }
}

int main(int argc, char **argv) {
    int status = -1;
    const uint64_t milliseconds = argc > 1 ? strtoull(argv[1], NULL, 10) : 300;
    const pid_t child = fork();
    if (child == 0) {
        enter_sandbox();
        works(milliseconds);
        exit(5);
    }
    waitpid(child, &status, 0);
    works(milliseconds);
    printf("child %x\n", (unsigned)status);
    return 7;
}
