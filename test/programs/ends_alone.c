/* The main thread ends alone, by no function of libc's, and so does the process if it has no other
 * thread.
 *
 * usage: ends_alone exit|exit_in_sandbox|killed|strict_exit|strict_killed [thread|returns]
 *
 * The thread ends by exit(2), or is killed for a call that its sandbox forbids; strict: in
 * seccomp's strict mode. thread: another thread goes on for a moment, and ends the process by its
 * own bare exit(2), or returns. The status is 7, or that of the kill; beside another thread Linux
 * from 5.19 on takes the last thread's. */
#define _GNU_SOURCE
#include "cpu_work.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

BURNER(works_first, 300)
BURNER(works_on, 300)

static int enter_sandbox(void) {
    struct sock_filter steps[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getppid, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_THREAD),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog program = {.len = sizeof steps / sizeof *steps, .filter = steps};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

static void *thread_main(void *returns) {
    works_on();
    (void)!write(STDOUT_FILENO, "went on\n", 8);
    if (!returns)
        syscall(SYS_exit, 7);
    return NULL;
}

int main(int argc, char **argv) {
    const char *const how = argc > 1 ? argv[1] : "";
    pthread_t thread;
    works_first();
    char *const returns = argc > 2 && strcmp(argv[2], "returns") == 0 ? argv[2] : NULL;
    if (argc > 2 && pthread_create(&thread, NULL, thread_main, returns) != 0)
        return 1;
    if (strstr(how, "strict")) {
        if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) != 0)
            return 2;
    } else if (strcmp(how, "exit") != 0 && !enter_sandbox()) {
        return 2;
    }
    if (strstr(how, "killed"))
        syscall(SYS_getppid);
    for (;;)
        syscall(SYS_exit, 7);
}
