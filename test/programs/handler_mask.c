/* Prints as a number what the kernel blocks while SIGPROF is handled: libc's answer would leave its
 * own signals out. */
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

/* As the kernel has it. */
struct kernel_action {
    void *handler;
    unsigned long flags;
    void *restorer;
    uint64_t mask;
};

int main(void) {
    struct kernel_action action = {.mask = 0};
    if (syscall(SYS_rt_sigaction, SIGPROF, NULL, &action, sizeof action.mask) != 0)
        return 2;
    printf("%llu\n", (unsigned long long)action.mask);
    return 0;
}
