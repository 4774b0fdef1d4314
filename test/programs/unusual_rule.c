/* Works in a function whose caller is found only by an expression that reads memory twice, which
 * our walker leaves to libunwind: the top of its frame holds the address of the address of its end.
 *
 * usage: unusual_rule MILLISECONDS [USER]
 * USER: the user that root becomes first.
 */
/* flags: -fno-optimize-sibling-calls */
#define _GNU_SOURCE
#include "cpu_work.h"

#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

/* DW_CFA_def_cfa_expression, 4 bytes: DW_OP_breg7 0, DW_OP_deref twice */
__asm__(".globl spins_unusually\n.type spins_unusually, @function\nspins_unusually:\n"
        "    .cfi_startproc\n"
        "    sub $16, %rsp\n    .cfi_adjust_cfa_offset 16\n"
        "    lea 24(%rsp), %rax\n    mov %rax, 8(%rsp)\n"
        "    lea 8(%rsp), %rax\n    mov %rax, (%rsp)\n"
        "    .cfi_remember_state\n    .cfi_escape 0x0f, 4, 0x77, 0x00, 0x06, 0x06\n"
        "1:  dec %rdi\n    jnz 1b\n"
        "    .cfi_restore_state\n"
        "    add $16, %rsp\n    .cfi_adjust_cfa_offset -16\n    ret\n"
        "    .cfi_endproc\n.size spins_unusually, . - spins_unusually\n");

void spins_unusually(uint64_t turns);

NOIPA static void calls_the_unusual(uint64_t nanoseconds) {
    const uint64_t end = cpu_now() + nanoseconds;
    while (cpu_now() < end)
        spins_unusually(10000000);
}

int main(int argc, char **argv) {
    const uid_t user = argc > 2 ? (uid_t)strtoul(argv[2], NULL, 10) : 0;
    if (user && setresuid(user, user, user) != 0)
        return 1;
    calls_the_unusual((argc > 1 ? strtoull(argv[1], NULL, 10) : 500) * NS_PER_MS);
    return 7;
}
