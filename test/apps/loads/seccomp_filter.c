/* Sets a filter at the start that kills the process for timer_create, socket or clone; then
 * works. */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

int main(void) {
    static const int forbidden[] = {SYS_timer_create, SYS_socket, SYS_clone, SYS_clone3};
    struct sock_filter rules[2 * 4 + 2];
    size_t count = 0;
    rules[count++] =
        (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (size_t i = 0; i < 4; i++) {
        rules[count++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
                                                      (unsigned)forbidden[i], 0, 1);
        rules[count++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
    }
    rules[count++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    const struct sock_fprog filter = {.len = (unsigned short)count, .filter = rules};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0)
        return 1;
    volatile uint64_t sum = 0;
    for (uint64_t i = 0; i < 1000000000; i++)
        sum += i * i;
    for (int i = 0; i < 100000; i++)
        free(malloc(1000));
    puts("done");
    return 5;
}
