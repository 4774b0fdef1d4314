/* Gets SIGTERM while the process forks. raises_in_fork.so registers a fork handler before the
 * profiler registers its own, so that its handler runs after the profiler's has taken its locks,
 * and raises the signal. The signal has its default action.
 *
 * usage: LD_PRELOAD="libotelprof.so raises_in_fork.so" ends_in_fork */
#include "cpu_sample.h"

#include <sys/wait.h>
#include <unistd.h>

SAMPLED_BURNER(works_before, 50)

int main(void) {
    works_before();
    const pid_t child = fork();
    if (child == 0)
        _exit(0);
    waitpid(child, NULL, 0);
    return 0;
}
