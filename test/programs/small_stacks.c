/* Sets alternate signal stacks of 2 KiB, on which no signal can be delivered.
 *
 * usage: small_stacks inherited|refused
 *
 * inherited: the program and its forked child work; the child has its parent's stack. The program
 * prints the child's id, and the nanoseconds of CPU time that all of the child's threads used, by
 * the kernel's account. refused: the kernel refuses a stack of 100 bytes (the program exits with 1
 * if it does not), and the program works. */
#define _GNU_SOURCE
#include "cpu_sample.h"
#include "forked.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

SAMPLED_BURNER(works_on, 50)

static unsigned long long in_ns(struct timeval time) {
    return (unsigned long long)time.tv_sec * 1000000000u + (unsigned long long)time.tv_usec * 1000u;
}

int main(int argc, char **argv) {
    static char room[2048];
    stack_t stack = {.ss_sp = room, .ss_size = sizeof room};
    struct rusage used;
    int status = 0;
    if (argc > 1 && strcmp(argv[1], "refused") == 0) {
        stack.ss_size = 100;
        if (sigaltstack(&stack, NULL) == 0)
            return 1;
        works_on();
        return 0;
    }
    if (sigaltstack(&stack, NULL) != 0)
        return 1;
    const pid_t child = fork_profiled();
    works_on();
    if (child == 0)
        exit(0);
    wait4(child, &status, 0, &used);
    printf("%d %llu\n", child, in_ns(used.ru_utime) + in_ns(used.ru_stime));
    return status ? 2 : 0;
}
