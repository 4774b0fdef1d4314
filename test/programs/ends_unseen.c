/* Burns so many milliseconds, prints the CPU time that it has used, and ends as Go's programs do:
 * by an exit_group of its own. It has the note that Go's linker writes.
 *
 * usage: ends_unseen MILLISECONDS
 */
#include "cpu_work.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>

__asm__(".pushsection .note.go.buildid, \"a\", @note\n\t"
        ".balign 4\n\t"
        ".long 4, 4, 4\n\t" /* sizes of name and id, type */
        ".ascii \"Go\\0\\0\"\n\t"
        ".ascii \"none\"\n\t"
        ".popsection");

NOIPA static void burns(uint64_t milliseconds) {
    WORK_FOR(milliseconds * NS_PER_MS);
}

int main(int argc, char **argv) {
    burns(argc > 1 ? strtoull(argv[1], NULL, 10) : 1000);
    printf("%llu\n", (unsigned long long)cpu_now());
    fflush(stdout);
    __asm__ volatile("syscall" : : "a"(SYS_exit_group), "D"(7) : "rcx", "r11", "memory");
    return 1;
}
