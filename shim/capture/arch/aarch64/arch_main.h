/* Calls main, and needs neither its stack nor its registers afterwards.
 *
 * Source: Procedure Call Standard for the Arm 64-bit Architecture (6.1, 6.4).
 */
#ifndef OTELPROF_ARCH_MAIN_H
#define OTELPROF_ARCH_MAIN_H

#include "arch_forward.h"

#include <stddef.h>

/* Loads and stores a register of the struct main_call `call`; the address is in x16. */
#define ARCH_MAIN_CALL_IS_AT_X16(call)                                                             \
    "adrp x16, " #call "\n\t"                                                                      \
    "add x16, x16, #:lo12:" #call "\n\t"

/* Defines `int name(int argc, char **argv, char **envp)`, which keeps its state in the variable
 * `call`, a struct main_call, and calls
 *     begins()
 *     __sigsetjmp(cleanup, 0), and, if that returns again, thread_ends(), which must not return
 *     watched()
 *     program(argc, argv, envp)
 *     returned(status), which must not return
 * The stack pointer is the same at the calls of __sigsetjmp, of main and of returned():
 * pthread_exit jumps back here once it has unwound to a frame that is not below this stack pointer.
 * Afterwards the code uses no register that main should have preserved. The frame has a record of
 * x29 and x30, so that main's caller is found below it. */
#define ARCH_DEFINE_MAIN_CALL(name, call, begins, watched, thread_ends, returned)                  \
    int name(int argc, char **argv, char **envp);                                                  \
    void name##_body(void) __asm__(#name);                                                         \
    ARCH_BARE_FUNCTION void name##_body(void) {                                                    \
        __asm__ volatile(                                                                          \
            "stp x29, x30, [sp, #-16]!\n\t"                                                        \
            ".cfi_def_cfa_offset 16\n\t"                                                           \
            ".cfi_offset 29, -16\n\t"                                                              \
            ".cfi_offset 30, -8\n\t"                                                               \
            "mov x29, sp\n\t" ARCH_MAIN_CALL_IS_AT_X16(                                            \
                call) "stp x0, x1, [x16, %[argc]]\n\t"                                             \
                      "str x2, [x16, %[envp]]\n\t"                                                 \
                      "str x30, [x16, %[caller]]\n\t"                                              \
                      "str x29, [x16, %[stack]]\n\t"                                               \
                      "bl " #begins "\n\t" ARCH_MAIN_CALL_IS_AT_X16(                               \
                          call) "add x0, x16, %[cleanup]\n\t"                                      \
                                "mov w1, #0\n\t"                                                   \
                                "bl __sigsetjmp\n\t"                                               \
                                "hint #36\n\t" /* bti j: the loader may jump back by br */         \
                                "cbz w0, 1f\n\t"                                                   \
                                "bl " #thread_ends "\n"                                            \
                                "1:\n\t"                                                           \
                                "bl " #watched "\n\t" ARCH_MAIN_CALL_IS_AT_X16(                    \
                                    call) "ldp x0, x1, [x16, %[argc]]\n\t"                         \
                                          "ldr x2, [x16, %[envp]]\n\t"                             \
                                          "ldr x16, [x16, %[program]]\n\t"                         \
                                          "blr x16\n\t" ARCH_MAIN_CALL_IS_AT_X16(                  \
                                              call) "ldr x29, [x16, %[stack]]\n\t"                 \
                                                    "mov sp, x29\n\t"                              \
                                                    "ldr x30, [x16, %[caller]]\n\t"                \
                                                    "str x30, [sp, #8]\n\t"                        \
                                                    "bl " #returned "\n\t"                         \
                                                    "brk #1"                                       \
            :                                                                                      \
            : [program] "i"(offsetof(struct main_call, program)),                                  \
              [argc] "i"(offsetof(struct main_call, argc)),                                        \
              [envp] "i"(offsetof(struct main_call, envp)),                                        \
              [caller] "i"(offsetof(struct main_call, caller)),                                    \
              [stack] "i"(offsetof(struct main_call, stack)),                                      \
              [cleanup] "i"(offsetof(struct main_call, cleanup)));                                 \
        ARCH_NO_RETURN                                                                             \
    }                                                                                              \
    _Static_assert(offsetof(struct main_call, argv) == offsetof(struct main_call, argc) + 8,       \
                   "stored as a pair");

#endif
