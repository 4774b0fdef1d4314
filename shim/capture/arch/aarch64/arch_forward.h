/* Defines functions that observe a call and forward it unchanged: with the arguments in its
 * registers, and with its caller's frame on the stack. Such a function need not know how many
 * arguments there are.
 *
 * GCC has no functions without prologue here. Each definition is therefore the only statement of a
 * function without parameters, whose compiled code has nothing before it but a landing pad: the
 * function keeps nothing, calls nothing, and has no frame (ARCH_BARE_FUNCTION). The function's name
 * in the object is the name of the call. test_arch.py checks its first instructions.
 *
 * Source: Procedure Call Standard for the Arm 64-bit Architecture (6.4, 6.8.2).
 */
#ifndef OTELPROF_ARCH_FORWARD_H
#define OTELPROF_ARCH_FORWARD_H

#if defined(__ARM_FEATURE_PAC_DEFAULT) && (__ARM_FEATURE_PAC_DEFAULT & 4)
#error "a bare function must not sign its return address: build without pac-ret+leaf"
#endif

#if defined(__clang__)
#define ARCH_BARE_FUNCTION __attribute__((naked, noinline, used))
#define ARCH_NO_RETURN
#else
#define ARCH_BARE_FUNCTION                                                                         \
    __attribute__((noinline, noclone, used, optimize("O2", "omit-frame-pointer"),                  \
                   target("omit-leaf-frame-pointer"), no_stack_protector))
#define ARCH_NO_RETURN __builtin_unreachable();
#endif

/* Saves the registers of arguments, and that of the address of a result in memory, around a call of
 * `function`. */
#define ARCH_CALL_KEEPING_ARGUMENTS(function)                                                      \
    "stp x29, x30, [sp, #-96]!\n\t"                                                                \
    ".cfi_def_cfa_offset 96\n\t"                                                                   \
    ".cfi_offset 29, -96\n\t"                                                                      \
    ".cfi_offset 30, -88\n\t"                                                                      \
    "mov x29, sp\n\t"                                                                              \
    "stp x0, x1, [sp, #16]\n\t"                                                                    \
    "stp x2, x3, [sp, #32]\n\t"                                                                    \
    "stp x4, x5, [sp, #48]\n\t"                                                                    \
    "stp x6, x7, [sp, #64]\n\t"                                                                    \
    "str x8, [sp, #80]\n\t"                                                                        \
    "bl " #function "\n\t"                                                                         \
    "mov x17, x0\n\t"                                                                              \
    "ldp x0, x1, [sp, #16]\n\t"                                                                    \
    "ldp x2, x3, [sp, #32]\n\t"                                                                    \
    "ldp x4, x5, [sp, #48]\n\t"                                                                    \
    "ldp x6, x7, [sp, #64]\n\t"                                                                    \
    "ldr x8, [sp, #80]\n\t"                                                                        \
    "ldp x29, x30, [sp], #96\n\t"                                                                  \
    ".cfi_restore 29\n\t"                                                                          \
    ".cfi_restore 30\n\t"                                                                          \
    ".cfi_def_cfa_offset 0\n\t"

/* Jumps to the address that is stored at the symbol `place`. x16 and x17 are for such stubs. */
#define ARCH_JUMP_THROUGH(place)                                                                   \
    "adrp x16, " place "\n\t"                                                                      \
    "ldr x16, [x16, #:lo12:" place "]\n\t"                                                         \
    "br x16\n"

/* Defines `static void name(void)`, which calls `observer` without arguments and then jumps to
 * next[place]. `observer` may change that pointer. */
#define ARCH_DEFINE_FORWARD(name, observer, next, place)                                           \
    ARCH_BARE_FUNCTION static void name(void) {                                                    \
        __asm__ volatile(ARCH_CALL_KEEPING_ARGUMENTS(observer)                                     \
                             ARCH_JUMP_THROUGH(#next "+8*%c[at]")                                  \
                         :                                                                         \
                         : [at] "i"(place));                                                       \
        ARCH_NO_RETURN                                                                             \
    }

/* Defines and exports `name`, which jumps to next[place]. If the word at offset `wanted` of the
 * variable `state` is not 0, it calls `observer` first. */
#define ARCH_DEFINE_WATCHED_FORWARD(name, state, wanted, observer, next, place)                    \
    void hook_##name(void) __asm__(#name);                                                         \
    ARCH_BARE_FUNCTION __attribute__((visibility("default"))) void hook_##name(void) {             \
        __asm__ volatile("adrp x16, " #state "+%c[word]\n\t"                                       \
                         "ldr x16, [x16, #:lo12:" #state "+%c[word]]\n\t"                          \
                         "cbnz x16, 1f\n\t" ARCH_JUMP_THROUGH(                                     \
                             #next "+8*%c[at]") "1:\n\t" ARCH_CALL_KEEPING_ARGUMENTS(observer)     \
                             ARCH_JUMP_THROUGH(#next "+8*%c[at]")                                  \
                         :                                                                         \
                         : [word] "i"(wanted), [at] "i"(place));                                   \
        ARCH_NO_RETURN                                                                             \
    }

/* Defines and exports `long syscall(long number, ...)`, which jumps to the pointer `next` if the
 * number's byte in the array `routes` is 0. If that byte is
 *     `watched`      it goes on to watched_call
 *     `enters`       to enters_call
 *     another        to copies_call if bool copies(number, first, second) returns true, otherwise
 *                    to `next` */
#define ARCH_DEFINE_SYSCALL(next, routes, watched, watched_call, enters, enters_call, copies,      \
                            copies_call)                                                           \
    void hook_syscall(void) __asm__("syscall");                                                    \
    ARCH_BARE_FUNCTION __attribute__((visibility("default"))) void hook_syscall(void) {            \
        __asm__ volatile(                                                                          \
            "mov x16, %[numbers]\n\t"                                                              \
            "cmp x0, x16\n\t"                                                                      \
            "b.hs 1f\n\t"                                                                          \
            "adrp x16, " #routes "\n\t"                                                            \
            "add x16, x16, #:lo12:" #routes "\n\t"                                                 \
            "ldrb w17, [x16, x0]\n\t"                                                              \
            "cbnz w17, 2f\n"                                                                       \
            "1:\n\t" ARCH_JUMP_THROUGH(#next) "2:\n\t"                                             \
                                              "cmp w17, %[is_watched]\n\t"                         \
                                              "b.ne 3f\n\t"                                        \
                                              "b " #watched_call "\n"                              \
                                              "3:\n\t"                                             \
                                              "cmp w17, %[is_entered]\n\t"                         \
                                              "b.ne 4f\n\t"                                        \
                                              "b " #enters_call "\n"                               \
                                              "4:\n\t" ARCH_CALL_KEEPING_ARGUMENTS(                \
                                                  copies) "tst w17, #0xff\n\t"                     \
                                                          "b.eq 1b\n\t"                            \
                                                          "b " #copies_call "\n\t"                 \
            :                                                                                      \
            : [numbers] "i"(sizeof(routes)), [is_watched] "i"(watched), [is_entered] "i"(enters)); \
        ARCH_NO_RETURN                                                                             \
    }

/* Defines `static void name(void)`, which takes its arguments as syscall() does. It jumps to
 * `blocking` if the number is one of the three, otherwise to the function that `next` points to. */
#define ARCH_DEFINE_NUMBERED_FORWARD(name, first, second, third, blocking, next)                   \
    ARCH_BARE_FUNCTION static void name(void) {                                                    \
        __asm__ volatile("cmp x0, %[a]\n\t"                                                        \
                         "b.eq 1f\n\t"                                                             \
                         "cmp x0, %[b]\n\t"                                                        \
                         "b.eq 1f\n\t"                                                             \
                         "cmp x0, %[c]\n\t"                                                        \
                         "b.eq 1f\n\t" ARCH_JUMP_THROUGH(#next) "1:\n\t"                           \
                                                                "b " #blocking "\n\t"              \
                         :                                                                         \
                         : [a] "i"(first), [b] "i"(second), [c] "i"(third));                       \
        ARCH_NO_RETURN                                                                             \
    }

/* Defines and exports `name`, a function of up to three arguments. It jumps to the address that
 *     void *choose(first, second, third, const void *caller)
 * returns; `caller` is the call's return address. */
#define ARCH_DEFINE_CHOSEN_CALL(name, choose)                                                      \
    void hook_##name(void) __asm__(#name);                                                         \
    ARCH_BARE_FUNCTION __attribute__((visibility("default"))) void hook_##name(void) {             \
        __asm__ volatile("mov x3, x30\n\t" ARCH_CALL_KEEPING_ARGUMENTS(choose) "br x17" ::);       \
        ARCH_NO_RETURN                                                                             \
    }

#endif
