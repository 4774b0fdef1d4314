/* Forks a child that works for 1.2 seconds and allocates now and then, 16 bytes each time. The
 * child prints how many bytes that was. */
#include "cpu_work.h"
#include "forked.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

NOIPA static void allocates(void) {
    void *volatile object = malloc(16);
    free(object);
}

int main(void) {
    if (fork_profiled() != 0)
        return wait(NULL) < 0;
    uint64_t bytes = 0;
    while (cpu_now() < 1200 * NS_PER_MS) {
        allocates();
        bytes += 16;
        WORK_UNTIL(cpu_now() + 1000);
    }
    printf("%llu\n", (unsigned long long)bytes);
    exit(0);
}
