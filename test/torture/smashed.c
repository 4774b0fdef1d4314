/* Runs code that a sampler must not believe: rubbish in rbp, and unwind information written by hand
 * that is wrong in every way. Each function spins without touching memory and restores everything
 * before it returns; its caller calls it for a known part of the time. */
#define _GNU_SOURCE
#include "torture.h"

#include <sys/mman.h>

enum { PAGE = 4096, ROUNDS = 400000 };

WORK(work_in_sound_code)

/* Defines NAME(value, rounds), which holds `value` in rbp while it counts `rounds` down. Its CFA is
 * relative to rsp and right, unless `lies` changes that. */
#define SPIN(name, lies)                                                                           \
    void name(uint64_t value, uint64_t rounds);                                                    \
    __asm__(".text\n.p2align 4\n.type " #name ", @function\n" #name ":\n"                          \
            "    .cfi_startproc\n"                                                                 \
            "    push %rbp\n"                                                                      \
            "    .cfi_def_cfa_offset 16\n"                                                         \
            "    .cfi_offset %rbp, -16\n"                                                          \
            "    mov %rdi, %rbp\n" lies "1:  sub $1, %rsi\n"                                       \
            "    jnz 1b\n"                                                                         \
            "    .cfi_restore_state\n"                                                             \
            "    pop %rbp\n"                                                                       \
            "    .cfi_def_cfa_offset 8\n"                                                          \
            "    ret\n"                                                                            \
            "    .cfi_endproc\n.size " #name ", . - " #name "\n")
#define KEEP " .cfi_remember_state\n"

SPIN(spin_soundly, KEEP);
SPIN(spin_offset_too_large, KEEP " .cfi_def_cfa_offset 0x7ffffff8\n");
SPIN(spin_offset_beyond_frame, KEEP " .cfi_def_cfa_offset 4096\n");
SPIN(spin_offset_negative, KEEP " .cfi_def_cfa_offset -64\n");
SPIN(spin_offset_odd, KEEP " .cfi_def_cfa_offset 13\n");
SPIN(spin_on_rbp, KEEP " .cfi_def_cfa %rbp, 16\n");
SPIN(spin_rbp_nowhere, KEEP " .cfi_offset %rbp, -0x100000\n");
SPIN(spin_other_register, KEEP " .cfi_def_cfa %r13, 8\n");
/* DW_CFA_def_cfa_expression, 5 bytes: deref of a constant that nothing maps */
SPIN(spin_expression_wild, KEEP " .cfi_escape 0x0f, 5, 0x0a, 0xff, 0x7f, 0x06, 0x06\n");
/* the same, with an operation that does not exist, and one that pops from an empty stack */
SPIN(spin_expression_unknown, KEEP " .cfi_escape 0x0f, 2, 0xff, 0xff\n");
SPIN(spin_expression_empty, KEEP " .cfi_escape 0x0f, 1, 0x22\n");
/* DW_CFA_expression for the return address: rsp + a wild offset */
SPIN(spin_return_address_wild, KEEP " .cfi_escape 0x10, 16, 4, 0x77, 0xff, 0xff, 0x7f\n");
SPIN(spin_no_return_address, KEEP " .cfi_undefined %rip\n");

typedef void spin_function(uint64_t, uint64_t);
static spin_function *const spins[] = {spin_soundly,
                                       spin_offset_too_large,
                                       spin_offset_beyond_frame,
                                       spin_offset_negative,
                                       spin_offset_odd,
                                       spin_on_rbp,
                                       spin_rbp_nowhere,
                                       spin_other_register,
                                       spin_expression_wild,
                                       spin_expression_unknown,
                                       spin_expression_empty,
                                       spin_return_address_wild,
                                       spin_no_return_address};
enum { SPINS = sizeof spins / sizeof *spins };

static void *torture(void *number) {
    char *const guarded =
        mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(guarded + PAGE, PAGE, PROT_NONE);
    const uint64_t rubbish[] = {0,
                                1,
                                0x1234567,
                                UINT64_C(0x8000000000000000),
                                UINT64_MAX,
                                UINT64_MAX - 15,
                                (uintptr_t)guarded + PAGE - 8,
                                (uintptr_t)guarded + PAGE,
                                (uintptr_t)&guarded,
                                (uintptr_t)&guarded + 1,
                                (uintptr_t)torture};
    const unsigned kinds = sizeof rubbish / sizeof *rubbish;
    for (unsigned i = (unsigned)(intptr_t)number; time_left(); i++) {
        spins[i % SPINS](rubbish[i / SPINS % kinds], ROUNDS);
        void *volatile block = malloc(64 + i % 1000);
        free(block);
        work_in_sound_code(200);
    }
    munmap(guarded, 2 * PAGE);
    return NULL;
}

int main(int argc, char **argv) {
    torture_begin(argc, argv);
    run_threads(torture, THREADS);
    SHARE(work_in_sound_code);
    return torture_end();
}
