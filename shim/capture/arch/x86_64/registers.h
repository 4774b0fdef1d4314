/* What is particular to x86-64 Linux: registers of an interrupted thread, the signal frame, and
 * where the thread's static TLS block begins.
 *
 * Sources: System V psABI for AMD64 (figure 3.36, DWARF register numbers; 3.4.1, initial stack);
 * Linux arch/x86/include/uapi/asm/{sigcontext,ucontext}.h.
 * Context: any. Async-signal-safe: yes.
 */
#ifndef OTELPROF_ARCH_X86_64_H
#define OTELPROF_ARCH_X86_64_H

#if !defined(__x86_64__) || defined(__ILP32__)
#error "libotelprof knows x86-64 only"
#endif

#include "harvest.h"

#include <cpuid.h>
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <ucontext.h>

/* DWARF numbers that the unwinder tracks. */
enum { DWARF_RBP = 6, DWARF_RSP = 7, DWARF_RA = 16 };

/* On return from a signal handler rsp points at the ucontext; these are the offsets of the saved
 * registers within it. The CFA of the frame, in libc's CFI, is the saved rsp. */
enum {
    SIGFRAME_RBP = offsetof(ucontext_t, uc_mcontext.gregs[REG_RBP]),
    SIGFRAME_RSP = offsetof(ucontext_t, uc_mcontext.gregs[REG_RSP]),
    SIGFRAME_RIP = offsetof(ucontext_t, uc_mcontext.gregs[REG_RIP]),
};

/* The most that the kernel needs of a stack to deliver a signal to a program that has not asked for
 * AMX: the frame (return address, ucontext, siginfo: under 1 KiB with its alignment) and the
 * processor's state, whose size CPUID leaf 0dh tells; AMX tiles, components 17 and 18, are last. */
static inline size_t signal_frame_bytes(void) {
    unsigned size = 0;
    unsigned tiles = 0;
    unsigned a;
    unsigned c;
    unsigned d;
    if (__get_cpuid_count(13, 0, &a, &size, &c, &d) &&
        __get_cpuid_count(13, 17, &a, &tiles, &c, &d) && tiles && tiles < size)
        size = tiles;
    return 1024 + size;
}

/* All registers of an interrupted thread, in DWARF order. */
static inline void registers_from_context(uint64_t registers[REGISTER_COUNT],
                                          const ucontext_t *context) {
    static const uint8_t order[REGISTER_COUNT] = {
        REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI, REG_RBP, REG_RSP, REG_R8,
        REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15, REG_RIP};
    for (int i = 0; i < REGISTER_COUNT; i++)
        registers[i] = (uint64_t)context->uc_mcontext.gregs[order[i]];
}

/* Whether the signal has ended a system call with EINTR: the call's instruction leaves the address
 * behind it in rcx and the flags in r11. */
static inline bool context_has_interrupted_call(const ucontext_t *context) {
    const greg_t *const registers = context->uc_mcontext.gregs;
    return registers[REG_RAX] == -EINTR && registers[REG_RCX] == registers[REG_RIP] &&
           registers[REG_R11] == registers[REG_EFL];
}

/* When the signal's handler returns, the thread calls `function`, which must not return. */
static inline void context_call(ucontext_t *context, void (*function)(void)) {
    enum { RED_ZONE = 128, DIRECTION_FLAG = 0x400 }; /* psABI 3.2.2, 3.2.1 */
    greg_t *const registers = context->uc_mcontext.gregs;
    registers[REG_RSP] = ((registers[REG_RSP] - RED_ZONE) & ~(greg_t)15) - 8;
    registers[REG_EFL] &= ~(greg_t)DIRECTION_FLAG;
    registers[REG_RIP] = (greg_t)(uintptr_t)function;
}

/* The registers of this very place: callee-saved ones, rsp and rip; the others are 0. A macro,
 * because the frame must be the caller's own. */
#define REGISTERS_HERE(registers)                                                                  \
    do {                                                                                           \
        memset((registers), 0, sizeof(uint64_t) * REGISTER_COUNT);                                 \
        __asm__ volatile("movq %%rbx, 3*8(%0)\n\t"                                                 \
                         "movq %%rbp, 6*8(%0)\n\t"                                                 \
                         "movq %%rsp, 7*8(%0)\n\t"                                                 \
                         "movq %%r12, 12*8(%0)\n\t"                                                \
                         "movq %%r13, 13*8(%0)\n\t"                                                \
                         "movq %%r14, 14*8(%0)\n\t"                                                \
                         "movq %%r15, 15*8(%0)\n\t"                                                \
                         "leaq 0(%%rip), %%rdx\n\t"                                                \
                         "movq %%rdx, 16*8(%0)\n\t"                                                \
                         :                                                                         \
                         : "r"(registers)                                                          \
                         : "rdx", "memory");                                                       \
    } while (0)

/* Around our own arithmetic on the program's threads, which must not raise what the program looks
 * for (fetestexcept) or has trap (feenableexcept): its control and status word, and the usual one
 * in its place (psABI 3.2.3). Only what is behind a call that is not inlined stays between the two.
 * A signal handler needs none: the kernel gives it the usual one. */
static inline uint32_t floats_begin(void) {
    const uint32_t usual = 0x1f80; /* all exceptions masked, none raised, round to nearest */
    uint32_t before;
    __asm__ volatile("stmxcsr %0\n\tldmxcsr %1" : "=m"(before) : "m"(usual) : "memory");
    return before;
}
static inline void floats_end(uint32_t before) {
    __asm__ volatile("ldmxcsr %0" : : "m"(before) : "memory");
}

/* The same for good, the x87's control word included: of a thread of our own, which has inherited
 * them from its creator. */
static inline void floats_reset(void) {
    __asm__ volatile("fninit" : : : "memory");
    (void)floats_begin();
}

/* TLS variant II: the thread control block lies above the static TLS, and glibc puts both at the
 * top of the thread's stack block, so this address bounds every read of the stack from above. */
static inline uintptr_t thread_pointer(void) {
    return (uintptr_t)__builtin_thread_pointer();
}

/* memset(memory, 0, size), without libc's: that would be one more symbol to look up at each start.
 */
static inline void memory_clear(void *memory, size_t size) {
    __asm__ volatile("rep stosb" : "+D"(memory), "+c"(size) : "a"(0) : "memory");
}

#endif
