/* Defines the first and the last instructions of a signal handler that works on a stack of its own.
 *
 * No register need be kept, because the kernel restores them all. Async-signal-safe: yes.
 */
#ifndef OTELPROF_ARCH_SIGNAL_ENTRY_H
#define OTELPROF_ARCH_SIGNAL_ENTRY_H

#include "arch_forward.h"

#include <stddef.h>
#include <ucontext.h>

enum { ARCH_ENTRY_ROOM_BYTES = 1024 };

/* Restores the handler's arguments. */
#define ARCH_ENTRY_ARGUMENTS                                                                       \
    "mov w0, w21\n\t"                                                                              \
    "mov x1, x22\n\t"                                                                              \
    "mov x2, x23\n\t"

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
 * The address that the handler returns to is in x20. */
#define ARCH_DEFINE_SIGNAL_ENTRY(entry, is_libcs, foreign, tls, known, stack, high, bytes, work,   \
                                 pass_on)                                                          \
    void entry##_body(void) __asm__(#entry);                                                       \
    ARCH_BARE_FUNCTION void entry##_body(void) {                                                   \
        __asm__ volatile("mov x19, sp\n\t"                                                         \
                         ".cfi_def_cfa 19, 0\n\t"                                                  \
                         "mov x20, x30\n\t"                                                        \
                         ".cfi_register 30, 20\n\t"                                                \
                         "mov w21, w0\n\t"                                                         \
                         "mov x22, x1\n\t"                                                         \
                         "mov x23, x2\n\t"                                                         \
                         "ldr x3, [x2, %[ss_size]]\n\t"                                            \
                         "cbz x3, 3f\n\t"                                                          \
                         "ldr x3, [x2, %[ss_sp]]\n\t"                                              \
                         "sub x3, x19, x3\n\t"                                                     \
                         "cmp x3, %[room]\n\t"                                                     \
                         "b.lo 4f\n"                                                               \
                         "3:\n\t"                                                                  \
                         "mov x0, x2\n\t"                                                          \
                         "bl " #is_libcs "\n\t"                                                    \
                         "tst w0, #0xff\n\t" ARCH_ENTRY_ARGUMENTS "b.ne 4f\n\t"                    \
                         "mov x30, x20\n\t"                                                        \
                         "b " #foreign "\n"                                                        \
                         "4:\n\t"                                                                  \
                         "adrp x3, :gottprel:" #tls "\n\t"                                         \
                         "ldr x3, [x3, :gottprel_lo12:" #tls "]\n\t"                               \
                         "mrs x4, tpidr_el0\n\t"                                                   \
                         "add x3, x3, x4\n\t"                                                      \
                         "ldr x4, [x3, %[at_known]]\n\t"                                           \
                         "cbz x4, 1f\n\t"                                                          \
                         "ldr x4, [x3, %[at_stack]]\n\t"                                           \
                         "cbz x4, 2f\n\t"                                                          \
                         "ldr x4, [x4, %[at_high]]\n\t"                                            \
                         "sub x5, x4, x19\n\t"                                                     \
                         "mov x6, %[size]\n\t"                                                     \
                         "cmp x5, x6\n\t"                                                          \
                         "b.ls 2f\n\t" /* the thread is on that stack */                           \
                         "mov sp, x4\n"                                                            \
                         "2:\n\t"                                                                  \
                         "bl " #work "\n\t"                                                        \
                         "mov sp, x19\n\t"                                                         \
                         "tst w0, #0xff\n\t" ARCH_ENTRY_ARGUMENTS "b.eq 1f\n\t"                    \
                         "mov x30, x20\n\t"                                                        \
                         "ret\n"                                                                   \
                         "1:\n\t"                                                                  \
                         "mov x30, x20\n\t"                                                        \
                         "b " #pass_on                                                             \
                         :                                                                         \
                         : [at_known] "i"(known), [at_stack] "i"(stack), [at_high] "i"(high),      \
                           [size] "i"(bytes), [ss_sp] "i"(offsetof(ucontext_t, uc_stack.ss_sp)),   \
                           [ss_size] "i"(offsetof(ucontext_t, uc_stack.ss_size)),                  \
                           [room] "i"(ARCH_ENTRY_ROOM_BYTES));                                     \
        ARCH_NO_RETURN                                                                             \
    }

#endif
