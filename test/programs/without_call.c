/* Runs a program without some system calls, as a sandbox would: they fail with ENOSYS.
 *
 * usage: without_call NUMBER[,NUMBER...] PROGRAM [ARGUMENTS...]
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
#include <unistd.h>

enum { MAX_CALLS = 8, HEAD = 1, PER_CALL = 2 };

int main(int argc, char **argv) {
    struct sock_filter filter[HEAD + PER_CALL * MAX_CALLS + 1];
    unsigned short count = 0;
    if (argc < 3)
        return 2;
    filter[count++] =
        (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    char *rest;
    for (char *text = strtok_r(argv[1], ",", &rest); text && count < HEAD + PER_CALL * MAX_CALLS;
         text = strtok_r(NULL, ",", &rest)) {
        filter[count++] =
            (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)atoi(text), 0, 1);
        filter[count++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS);
    }
    filter[count++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    const struct sock_fprog program = {.len = count, .filter = filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
        perror("without_call");
        return 3;
    }
    execvp(argv[2], argv + 2);
    return 4;
}
