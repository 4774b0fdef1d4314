/* Defines the first and the last instructions of a signal handler that works on a stack of its own.
 *
 * No register need be kept, because the kernel restores them all.
 * Async-signal-safe: yes.
 */
#ifndef OTELPROF_ARCH_SIGNAL_ENTRY_H
#define OTELPROF_ARCH_SIGNAL_ENTRY_H

#include <stddef.h>
#include <ucontext.h>

enum { ARCH_ENTRY_ROOM_BYTES = 1024 };

/* Defines `entry`, a handler for sigaction(2). It runs these functions, each with the arguments
 * (int number, siginfo_t *info, void *context):
 *   foreign()    if bool is_libcs(void *context) returns false: then the thread's variables are not
 *                libc's, and the entry reads none of them;
 *   pass_on()    on the stack that the kernel has chosen, if the thread is not known;
 *   bool work()  otherwise, on the thread's own stack, even if the kernel has chosen another; if
 *                it returns false, then pass_on() on the kernel's stack.
 * A thread is known if the pointer at `known` in the thread-local variable `tls` is not NULL. The
 * pointer at `stack` in `tls` leads to a struct that has the upper end of the own stack, of `bytes`
 * bytes, at `high`. An alternate stack of the program's may have room for the kernel's frame alone:
 * if less than ARCH_ENTRY_ROOM_BYTES are left there, is_libcs() is not called, and counts as true.
 */
#define ARCH_DEFINE_SIGNAL_ENTRY(entry, is_libcs, foreign, tls, known, stack, high, bytes, work,   \
                                 pass_on)                                                          \
    __attribute__((naked)) void entry(__attribute__((unused)) int number,                          \
                                      __attribute__((unused)) siginfo_t *info,                     \
                                      __attribute__((unused)) void *context) {                     \
        __asm__ volatile("movq %%rsp, %%rbx\n\t"                                                   \
                         ".cfi_def_cfa_register %%rbx\n\t"                                         \
                         "movl %%edi, %%r12d\n\t"                                                  \
                         "movq %%rsi, %%r13\n\t"                                                   \
                         "movq %%rdx, %%r14\n\t"                                                   \
                         "cmpq $0, %c5(%%rdx)\n\t"                                                 \
                         "je 3f\n\t"                                                               \
                         "movq %%rsp, %%rax\n\t"                                                   \
                         "subq %c4(%%rdx), %%rax\n\t"                                              \
                         "cmpq %6, %%rax\n\t"                                                      \
                         "jb 4f\n"                                                                 \
                         "3:\n\t"                                                                  \
                         "andq $-16, %%rsp\n\t"                                                    \
                         "movq %%rdx, %%rdi\n\t"                                                   \
                         "call " #is_libcs "\n\t"                                                  \
                         "movq %%rbx, %%rsp\n\t"                                                   \
                         "movl %%r12d, %%edi\n\t"                                                  \
                         "movq %%r13, %%rsi\n\t"                                                   \
                         "movq %%r14, %%rdx\n\t"                                                   \
                         "testb %%al, %%al\n\t"                                                    \
                         "jz " #foreign "\n"                                                       \
                         "4:\n\t"                                                                  \
                         "movq " #tls "@gottpoff(%%rip), %%rax\n\t"                                \
                         "movq %%fs:%c0(%%rax), %%rcx\n\t"                                         \
                         "testq %%rcx, %%rcx\n\t"                                                  \
                         "jz " #pass_on "\n\t"                                                     \
                         "movq %%fs:%c1(%%rax), %%rcx\n\t"                                         \
                         "testq %%rcx, %%rcx\n\t"                                                  \
                         "jz 2f\n\t"                                                               \
                         "movq %c2(%%rcx), %%rcx\n\t"                                              \
                         "movq %%rcx, %%rax\n\t"                                                   \
                         "subq %%rsp, %%rax\n\t"                                                   \
                         "cmpq %3, %%rax\n\t"                                                      \
                         "jbe 2f\n\t" /* the thread is on that stack */                            \
                         "movq %%rcx, %%rsp\n"                                                     \
                         "2:\n\t"                                                                  \
                         "andq $-16, %%rsp\n\t"                                                    \
                         "call " #work "\n\t"                                                      \
                         "movq %%rbx, %%rsp\n\t"                                                   \
                         ".cfi_def_cfa_register %%rsp\n\t"                                         \
                         "testb %%al, %%al\n\t"                                                    \
                         "jz 1f\n\t"                                                               \
                         "ret\n"                                                                   \
                         "1:\n\t"                                                                  \
                         "movl %%r12d, %%edi\n\t"                                                  \
                         "movq %%r13, %%rsi\n\t"                                                   \
                         "movq %%r14, %%rdx\n\t"                                                   \
                         "jmp " #pass_on                                                           \
                         :                                                                         \
                         : "i"(known), "i"(stack), "i"(high), "i"(bytes),                          \
                           "i"(offsetof(ucontext_t, uc_stack.ss_sp)),                              \
                           "i"(offsetof(ucontext_t, uc_stack.ss_size)),                            \
                           "i"(ARCH_ENTRY_ROOM_BYTES));                                            \
    }

#endif
