/* Works, and forks: the CPU timer expires first inside of the fork (samples_in_masks.so.c), and
 * then in the program. */
#include "cpu_sample.h"

#include <sys/wait.h>

NOIPA static void forks(void) {
    const pid_t child = fork();
    if (child == 0)
        _exit(0);
    while (waitpid(child, NULL, 0) != child)
        continue;
    TAKE_CPU_SAMPLE();
}

int main(void) {
    cpu_samples_await();
    cpu_samples_hold();
    WORK_FOR(50 * NS_PER_MS);
    forks();
    return 0;
}
