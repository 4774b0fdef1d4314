/* Returns from main as Free Pascal's main does: with the stack pointer too low, and the registers
 * changed that it must keep. libc goes on all the same: the program prints "at the end" and ends
 * with status 7. */
#define _GNU_SOURCE
#include "cpu_sample.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

void *askew_caller; /* read by the assembler below */

static void at_end(void) {
    puts("at the end");
}

NOIPA void burns_in_main(void) {
    WORK_UNTIL(cpu_now() + 50 * NS_PER_MS);
    TAKE_CPU_SAMPLE();
}

__attribute__((used)) void askew_work(void) {
    atexit(at_end);
    burns_in_main();
}

__attribute__((naked)) int main(void) {
    __asm__ volatile("movq (%rsp), %rax\n\t"
                     "movq %rax, askew_caller(%rip)\n\t"
                     "subq $8, %rsp\n\t"
                     "call askew_work\n\t"
                     "subq $88, %rsp\n\t"
                     "movq $1, %rbx\n\t"
                     "movq $2, %rbp\n\t"
                     "movq $3, %r12\n\t"
                     "movq $4, %r13\n\t"
                     "movq $5, %r14\n\t"
                     "movq $6, %r15\n\t"
                     "movl $7, %eax\n\t"
                     "pushq askew_caller(%rip)\n\t"
                     "ret");
}
