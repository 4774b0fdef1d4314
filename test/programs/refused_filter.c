/* Has two threads, and requests a filter that kills for each new thread or process. The kernel
 * refuses it, because of a flag that it does not know. Then forks a child that works for so long;
 * each of the two ends with its own status.
 *
 * usage: refused_filter MILLISECONDS
 */
#define _GNU_SOURCE
#include "forked.h"
#include "works.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { UNKNOWN_FLAG = 1 << 30 };

static int is_refused(void) {
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone3, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog program = {.len = sizeof filter / sizeof *filter, .filter = filter};
    return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, UNKNOWN_FLAG, &program) == -1 &&
           errno == EINVAL;
}

static void *waits(void *unused) {
    pause();
    return unused;
}

int main(int argc, char **argv) {
    int status = -1;
    pthread_t other;
    const uint64_t milliseconds = argc > 1 ? strtoull(argv[1], NULL, 10) : 300;
    if (pthread_create(&other, NULL, waits, NULL) != 0 || !is_refused())
        return 3;
    const pid_t child = fork_profiled();
    if (child == 0) {
        works(milliseconds);
        exit(5);
    }
    waitpid(child, &status, 0);
    return WIFEXITED(status) && WEXITSTATUS(status) == 5 ? 7 : 4;
}
