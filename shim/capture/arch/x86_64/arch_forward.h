/* Defines functions that observe a call and forward it unchanged: with the arguments in its
 * registers, and with its caller's frame on the stack. Such a function need not know how many
 * arguments there are. It aligns the stack before it calls another function, because its caller may
 * not have (arch_entry.h).
 *
 * Source: System V psABI for AMD64 (3.2.3).
 */
#ifndef OTELPROF_ARCH_FORWARD_H
#define OTELPROF_ARCH_FORWARD_H

/* Begin and end a frame, whose frame pointer is the stack pointer: in between, code may push
 * registers and align the stack. */
#define ARCH_BEGIN_FRAME                                                                           \
    "pushq %%rbp\n\t"                                                                              \
    ".cfi_adjust_cfa_offset 8\n\t"                                                                 \
    ".cfi_rel_offset %%rbp, 0\n\t"                                                                 \
    "movq %%rsp, %%rbp\n\t"                                                                        \
    ".cfi_def_cfa_register %%rbp\n\t"
#define ARCH_END_FRAME                                                                             \
    "popq %%rbp\n\t"                                                                               \
    ".cfi_def_cfa %%rsp, 8\n\t"                                                                    \
    ".cfi_restore %%rbp\n\t"

/* Saves the six registers of arguments around a call of `function`. */
#define ARCH_CALL_KEEPING_ARGUMENTS(function)                                                      \
    ARCH_BEGIN_FRAME                                                                               \
    "pushq %%rdi\n\tpushq %%rsi\n\tpushq %%rdx\n\t"                                                \
    "pushq %%rcx\n\tpushq %%r8\n\tpushq %%r9\n\t"                                                  \
    "andq $-16, %%rsp\n\t"                                                                         \
    "call " #function "\n\t"                                                                       \
    "leaq -48(%%rbp), %%rsp\n\t"                                                                   \
    "popq %%r9\n\tpopq %%r8\n\tpopq %%rcx\n\t"                                                     \
    "popq %%rdx\n\tpopq %%rsi\n\tpopq %%rdi\n\t" ARCH_END_FRAME

/* Defines `static void name(void)`, which calls `observer` without arguments and then jumps to
 * next[place]. `observer` may change that pointer. */
#define ARCH_DEFINE_FORWARD(name, observer, next, place)                                           \
    __attribute__((naked)) static void name(void) {                                                \
        __asm__ volatile(ARCH_CALL_KEEPING_ARGUMENTS(observer) "jmpq *" #next "+8*%c[at](%%rip)"   \
                         :                                                                         \
                         : [at] "i"(place));                                                       \
    }

/* Defines and exports `name`, which jumps to next[place]. If the word at offset `wanted` of the
 * variable `state` is not 0, it calls `observer` first. */
#define ARCH_DEFINE_WATCHED_FORWARD(name, state, wanted, observer, next, place)                    \
    void hook_##name(void) __asm__(#name);                                                         \
    __attribute__((naked, visibility("default"))) void hook_##name(void) {                         \
        __asm__ volatile("cmpq $0, " #state "+%c[word](%%rip)\n\t"                                 \
                         "jne 1f\n\t"                                                              \
                         "jmpq *" #next "+8*%c[at](%%rip)\n"                                       \
                         "1:\n\t" ARCH_CALL_KEEPING_ARGUMENTS(observer) "jmpq *" #next             \
                                                                        "+8*%c[at](%%rip)"         \
                         :                                                                         \
                         : [word] "i"(wanted), [at] "i"(place));                                   \
    }

/* Defines and exports `long syscall(long number, ...)`, which jumps to the pointer `next` if the
 * number's byte in the array `routes` is 0. If that byte is
 *     `watched`      it goes on to watched_call
 *     `enters`       to enters_call
 *     another        to copies_call if bool copies(number, first, second) returns true, otherwise
 *                    to `next` */
#define ARCH_DEFINE_SYSCALL(next, routes, watched, watched_call, enters, enters_call, copies,      \
                            copies_call)                                                           \
    __attribute__((naked, visibility("default"))) long syscall(                                    \
        __attribute__((unused)) long number, ...) {                                                \
        __asm__ volatile(                                                                          \
            "cmpq %[numbers], %%rdi\n\t"                                                           \
            "jae 1f\n\t"                                                                           \
            "leaq " #routes "(%%rip), %%r11\n\t"                                                   \
            "movzbl (%%r11,%%rdi), %%r11d\n\t"                                                     \
            "testl %%r11d, %%r11d\n\t"                                                             \
            "jne 2f\n"                                                                             \
            "1:\n\t"                                                                               \
            "jmpq *" #next "(%%rip)\n"                                                             \
            "2:\n\t"                                                                               \
            "cmpl %[is_watched], %%r11d\n\t"                                                       \
            "je " #watched_call "\n\t"                                                             \
            "cmpl %[is_entered], %%r11d\n\t"                                                       \
            "je " #enters_call "\n\t" ARCH_CALL_KEEPING_ARGUMENTS(copies) "testb %%al, %%al\n\t"   \
                                                                          "jne " #copies_call      \
                                                                          "\n\t"                   \
                                                                          "jmpq *" #next "(%%rip)" \
            :                                                                                      \
            : [numbers] "i"(sizeof(routes)), [is_watched] "i"(watched), [is_entered] "i"(enters)); \
    }

/* Defines `static void name(void)`, which takes its arguments as syscall() does. It jumps to
 * `blocking` if the number is one of the three, otherwise to the function that `next` points to. */
#define ARCH_DEFINE_NUMBERED_FORWARD(name, first, second, third, blocking, next)                   \
    __attribute__((naked)) static void name(void) {                                                \
        __asm__ volatile("cmpq %[a], %%rdi\n\t"                                                    \
                         "je " #blocking "\n\t"                                                    \
                         "cmpq %[b], %%rdi\n\t"                                                    \
                         "je " #blocking "\n\t"                                                    \
                         "cmpq %[c], %%rdi\n\t"                                                    \
                         "je " #blocking "\n\t"                                                    \
                         "jmpq *" #next "(%%rip)"                                                  \
                         :                                                                         \
                         : [a] "i"(first), [b] "i"(second), [c] "i"(third));                       \
    }

/* Defines and exports `name`, a function of up to three arguments. It jumps to the address that
 *     void *choose(first, second, third, const void *caller)
 * returns; `caller` is the call's return address. */
#define ARCH_DEFINE_CHOSEN_CALL(name, choose)                                                      \
    void hook_##name(void) __asm__(#name);                                                         \
    __attribute__((naked, visibility("default"))) void hook_##name(void) {                         \
        __asm__ volatile("movq (%%rsp), %%rcx\n\t" ARCH_BEGIN_FRAME                                \
                         "pushq %%rdi\n\tpushq %%rsi\n\tpushq %%rdx\n\t"                           \
                         "andq $-16, %%rsp\n\t"                                                    \
                         "call " #choose "\n\t"                                                    \
                         "leaq -24(%%rbp), %%rsp\n\t"                                              \
                         "popq %%rdx\n\tpopq %%rsi\n\tpopq %%rdi\n\t" ARCH_END_FRAME               \
                         "jmpq *%%rax" ::);                                                        \
    }

#endif
