// flags: -no-pie -Wl,-z,max-page-size=0x200000,-z,separate-code,--section-start=.text=0x1000000
/* Begins with a loop, at the beginning of a segment, with nothing mapped before it, as linkers lay
 * out programs that want huge pages. Prints "ok". */
#include <stdio.h>

void runs_first(unsigned long turns);

__asm__(".section .text.unlikely, \"ax\", @progbits\n" /* before all others, with GNU's linkers */
        ".globl runs_first\n"
        ".type runs_first, @function\n"
        "runs_first:\n"
        ".cfi_startproc\n"
        "1: decq %rdi\n"
        "jnz 1b\n"
        "ret\n"
        ".cfi_endproc\n"
        ".size runs_first, . - runs_first\n"
        ".text\n");

int main(void) {
    runs_first(1000000000);
    puts("ok");
    return 0;
}
