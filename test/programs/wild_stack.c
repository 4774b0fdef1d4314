/* Has a stack pointer that points nowhere, as a smashed frame leaves it, and a handler of SIGSEGV,
 * which works and allocates for its report. Prints "reported".
 *
 * usage: wild_stack ADDRESS   (hexadecimal) */
#include "cpu_work.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

BURNER(works_on, 100)

static void report(int number) {
    (void)number;
    for (int i = 0; i < 100; i++) {
        void *volatile block = malloc(1 << 20);
        free(block);
    }
    works_on();
    _exit(write(STDOUT_FILENO, "reported\n", 9) == 9 ? 0 : 1);
}

void returns_nowhere(unsigned long stack);

__asm__(".globl returns_nowhere\n"
        ".type returns_nowhere, @function\n"
        "returns_nowhere:\n"
        ".cfi_startproc\n"
        "movq %rdi, %rsp\n"
        "ret\n"
        ".cfi_endproc\n"
        ".size returns_nowhere, . - returns_nowhere\n");

int main(int argc, char **argv) {
    static char room[1 << 16];
    const stack_t stack = {.ss_sp = room, .ss_size = sizeof room};
    struct sigaction action = {.sa_handler = report, .sa_flags = SA_ONSTACK};
    if (argc < 2 || sigaltstack(&stack, NULL) != 0 || sigaction(SIGSEGV, &action, NULL) != 0)
        return 1;
    returns_nowhere(strtoul(argv[1], NULL, 16));
    return 2;
}
