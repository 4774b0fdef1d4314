/* Functions that look at a call, and send it on as it came: with the arguments in its registers,
 * and with its caller's frame on the stack. They need not know how many arguments there are.
 *
 * Source: System V psABI for AMD64 (3.2.3).
 */
#ifndef OTELPROF_ARCH_FORWARD_H
#define OTELPROF_ARCH_FORWARD_H

/* Defines and exports `name`, a function of up to three arguments. It goes on where
 *     void *choose(first, second, third, const void *caller)
 * says; `caller` is what the call returns to. */
#define ARCH_DEFINE_CHOSEN_CALL(name, choose)                                                      \
    void own_##name(void) __asm__(#name);                                                          \
    __attribute__((naked, visibility("default"))) void own_##name(void) {                          \
        __asm__ volatile("movq (%%rsp), %%rcx\n\t"                                                 \
                         "pushq %%rdi\n\tpushq %%rsi\n\tpushq %%rdx\n\t"                           \
                         ".cfi_adjust_cfa_offset 24\n\t"                                           \
                         "call " #choose "\n\t"                                                    \
                         "popq %%rdx\n\tpopq %%rsi\n\tpopq %%rdi\n\t"                              \
                         ".cfi_adjust_cfa_offset -24\n\t"                                          \
                         "jmpq *%%rax" ::);                                                        \
    }

#endif
