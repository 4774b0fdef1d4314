/* SIGTERM comes while the process forks: from a handler that is registered before the profiler's
 * and so runs inside its own. The signal is left to its default.
 *
 * usage: LD_PRELOAD="libotelprof.so raises_in_fork.so" ends_in_fork */
#include "noipa.h"

#include <stdint.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static volatile uint64_t sink;

NOIPA static void works_before(void) {
    struct timespec now;
    do {
        for (int i = 0; i < 10000; i++)
            sink += (uint64_t)i;
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    } while (now.tv_sec == 0 && now.tv_nsec < 500000000);
}

int main(void) {
    works_before();
    const pid_t child = fork();
    if (child == 0)
        _exit(0);
    waitpid(child, NULL, 0);
    return 0;
}
