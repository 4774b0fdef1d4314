/* Calls main, and needs neither its stack nor its registers afterwards.
 *
 * Source: System V psABI for AMD64 (3.2).
 */
#ifndef OTELPROF_ARCH_MAIN_H
#define OTELPROF_ARCH_MAIN_H

#include <stddef.h>

/* Defines `int name(int argc, char **argv, char **envp)`, which keeps its state in the variable
 * `call`, a struct main_call, and calls
 *     begins()
 *     __sigsetjmp(cleanup, 0), and, if that returns again, thread_ends(), which must not return
 *     watched()
 *     program(argc, argv, envp)
 *     returned(status), which must not return
 * The stack pointer is the same at the calls of __sigsetjmp, of main and of returned():
 * pthread_exit jumps back here once it has unwound to a frame that is not below this stack pointer.
 * Afterwards the code uses no register that main should have preserved. */
#define ARCH_DEFINE_MAIN_CALL(name, call, begins, watched, thread_ends, returned)                  \
    __attribute__((naked)) static int name(__attribute__((unused)) int argc,                       \
                                           __attribute__((unused)) char **argv,                    \
                                           __attribute__((unused)) char **envp) {                  \
        __asm__ volatile("movq (%%rsp), %%rax\n\t"                                                 \
                         "movq %%rax, " #call "+%c[caller](%%rip)\n\t"                             \
                         "movq %%rsp, " #call "+%c[stack](%%rip)\n\t"                              \
                         "movq %%rdi, " #call "+%c[argc](%%rip)\n\t"                               \
                         "movq %%rsi, " #call "+%c[argv](%%rip)\n\t"                               \
                         "movq %%rdx, " #call "+%c[envp](%%rip)\n\t"                               \
                         "subq $8, %%rsp\n\t"                                                      \
                         ".cfi_adjust_cfa_offset 8\n\t"                                            \
                         "call " #begins "\n\t"                                                    \
                         "leaq " #call "+%c[cleanup](%%rip), %%rdi\n\t"                            \
                         "xorl %%esi, %%esi\n\t"                                                   \
                         "call __sigsetjmp@PLT\n\t"                                                \
                         "endbr64\n\t"                                                             \
                         "testl %%eax, %%eax\n\t"                                                  \
                         "je 1f\n\t"                                                               \
                         "call " #thread_ends "\n"                                                 \
                         "1:\n\t"                                                                  \
                         "call " #watched "\n\t"                                                   \
                         "movq " #call "+%c[argc](%%rip), %%rdi\n\t"                               \
                         "movq " #call "+%c[argv](%%rip), %%rsi\n\t"                               \
                         "movq " #call "+%c[envp](%%rip), %%rdx\n\t"                               \
                         "call *" #call "+%c[program](%%rip)\n\t"                                  \
                         "movq " #call "+%c[stack](%%rip), %%rsp\n\t"                              \
                         ".cfi_adjust_cfa_offset -8\n\t"                                           \
                         "movq " #call "+%c[caller](%%rip), %%rcx\n\t"                             \
                         "movq %%rcx, (%%rsp)\n\t"                                                 \
                         "subq $8, %%rsp\n\t"                                                      \
                         ".cfi_adjust_cfa_offset 8\n\t"                                            \
                         "movl %%eax, %%edi\n\t"                                                   \
                         "call " #returned "\n\t"                                                  \
                         "hlt"                                                                     \
                         :                                                                         \
                         : [program] "i"(offsetof(struct main_call, program)),                     \
                           [argc] "i"(offsetof(struct main_call, argc)),                           \
                           [argv] "i"(offsetof(struct main_call, argv)),                           \
                           [envp] "i"(offsetof(struct main_call, envp)),                           \
                           [caller] "i"(offsetof(struct main_call, caller)),                       \
                           [stack] "i"(offsetof(struct main_call, stack)),                         \
                           [cleanup] "i"(offsetof(struct main_call, cleanup)));                    \
    }

#endif
