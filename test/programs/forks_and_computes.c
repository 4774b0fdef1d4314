/* Computes until a file exists, then forks; the child computes for a second more, and makes no call
 * meanwhile: forks_and_computes FILE. The program ends with the child's status. */
#include "cpu_work.h"
#include "forked.h"

#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

NOIPA static void compute(uint64_t milliseconds) {
    WORK_FOR(milliseconds * NS_PER_MS);
}

int main(int argc, char **argv) {
    int status = 0;
    while (argc == 2 && access(argv[1], F_OK) != 0)
        compute(10);
    const pid_t child = fork_profiled();
    if (child == 0) {
        compute(1000);
        return 7;
    }
    return waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
