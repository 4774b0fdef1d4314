/* Walks the stack of a thread, from registers and a copy of its top: by elfutils' libdwfl, and so
 * by no code of the profiler's.
 */
#ifndef WAITS_WALK_H
#define WAITS_WALK_H

#include <stddef.h>
#include <stdint.h>

enum {
    WALK_REGISTERS = 17
}; /* rax, rdx, rcx, rbx, rsi, rdi, rbp, rsp, r8 to r15, rip: DWARF's order */

struct walk_sample {
    int pid;
    uint64_t registers[WALK_REGISTERS];
    const unsigned char *stack; /* from rsp up */
    size_t stack_size;
};

/* Writes "address function file" for each frame, leaf first and with ';' between them. An address
 * is that of the file; of callers, one that is in the call. Returns `text`. */
char *walk_text(const struct walk_sample *sample, char *text, size_t size);

/* Forgets the mappings of process `pid`, which have changed. */
void walk_forget(int pid);

#endif
