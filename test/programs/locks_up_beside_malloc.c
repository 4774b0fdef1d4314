/* Runs threads that allocate all the time, until one of them puts all into a sandbox that kills the
 * process for every call that they do not make themselves: they go on. Ends with status 7. */
#define _GNU_SOURCE
#include "awaits_export.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { THREADS = 4, AFTER = 20000 };

static volatile bool is_locked_up;

static void allocates(int count) {
    for (int i = 0; i < count; i++) {
        void *volatile object = malloc(100);
        free(object);
    }
}

static void *run(void *unused) {
    while (!is_locked_up)
        allocates(100);
    allocates(AFTER);
    return unused;
}

static void lock_up(void) {
    static const int used[] = {SYS_write,   SYS_exit, SYS_exit_group,    SYS_futex,
                               SYS_brk,     SYS_mmap, SYS_munmap,        SYS_mprotect,
                               SYS_madvise, SYS_rseq, SYS_rt_sigprocmask};
    enum { USED = sizeof used / sizeof *used };
    struct sock_filter filter[2 * USED + 2];
    unsigned short length = 0;
    filter[length++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0);
    for (int i = 0; i < USED; i++) {
        filter[length++] =
            (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)used[i], 0, 1);
        filter[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    }
    filter[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
    const struct sock_fprog program = {.len = length, .filter = filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) != 0)
        _exit(3);
}

int main(void) {
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, run, NULL);
    await_export();
    lock_up();
    is_locked_up = true;
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    return 7;
}
