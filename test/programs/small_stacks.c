/* Alternate signal stacks on which no signal can be delivered, of 2 KiB.
 *
 * usage: small_stacks inherited|refused
 * inherited: a forked child has its parent's, and works. refused: one of 100 bytes is refused by
 * the kernel (the program exits with 1 if it is not), and the program works. */
#include "cpu_work.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

BURNER(works_on, 300)

int main(int argc, char **argv) {
    static char room[2048];
    stack_t stack = {.ss_sp = room, .ss_size = sizeof room};
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
    const pid_t child = fork();
    works_on();
    if (child == 0)
        exit(0);
    waitpid(child, &status, 0);
    return status ? 2 : 0;
}
