/* Works; once a file exists it puts itself behind a filter that refuses one system call and lets
 * all others pass, and prints "in"; once a second file exists it ends with status 7.
 *
 * usage: refuses_a_call one|all kill|error NUMBER FILE FILE
 *
 * The filter is the thread's or that of all threads; the call kills or fails.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static volatile uint64_t sink;

static void work_until(const char *file) {
    while (access(file, F_OK) != 0)
        for (uint64_t i = 0; i < 3000000; i++)
            sink += i * i;
}

static int refuse(unsigned flags, uint32_t action, uint32_t number) {
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, action),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
        return -1;
    return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);
}

int main(int argc, char **argv) {
    if (argc != 6)
        return 2;
    const unsigned flags = strcmp(argv[1], "all") == 0 ? SECCOMP_FILTER_FLAG_TSYNC : 0;
    const uint32_t action =
        strcmp(argv[2], "kill") == 0 ? SECCOMP_RET_KILL_PROCESS : SECCOMP_RET_ERRNO | EPERM;
    work_until(argv[4]);
    if (refuse(flags, action, (uint32_t)strtoul(argv[3], NULL, 10)) != 0)
        return 3;
    (void)!write(STDOUT_FILENO, "in", 2);
    work_until(argv[5]);
    return 7;
}
