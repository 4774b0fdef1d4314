/* Moves a signal's frame, which the kernel has written onto a stack of the profiler, to the place
 * that it would have without the profiler.
 *
 * From below: the address that the handler returns to, the ucontext, the siginfo; then, at a
 * multiple of 64, the processor's state, whose size is in its software bytes.
 * Sources: Linux arch/x86/include/asm/sigframe.h (struct rt_sigframe), arch/x86/kernel/signal.c
 * (get_sigframe), arch/x86/include/uapi/asm/sigcontext.h (struct _fpx_sw_bytes); System V psABI for
 * AMD64 3.2.2.
 * Context: any. Async-signal-safe: yes.
 */
#ifndef OTELPROF_ARCH_SIGNAL_FRAME_H
#define OTELPROF_ARCH_SIGNAL_FRAME_H

#include "arch_syscall.h"

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <ucontext.h>

enum {
    /* the kernel's MINSIGSTKSZ (uapi/asm/signal.h): sigaltstack() refuses a smaller stack */
    ARCH_LEAST_STACK_BYTES = 2048,
    FRAME_CONTEXT = 8,   /* the ucontext follows the address that the handler returns to */
    CONTEXT_BYTES = 304, /* size of the kernel's ucontext; libc's is larger */
    FRAME_INFO = FRAME_CONTEXT + CONTEXT_BYTES,
    /* 440 bytes: the address, the ucontext and the siginfo */
    FRAME_BYTES = FRAME_INFO + (int)sizeof(siginfo_t),
    FRAME_STATE_ALIGNMENT = 64,
    FRAME_RED_ZONE = 128,
    STATE_WITHOUT_XSAVE = 512,
    STATE_SOFTWARE_BYTES = 464,
    STATE_MAGIC1 = 0x46505853, /* FP_XSTATE_MAGIC1 */
};

/* Returns true if the kernel's frame is at `frame`, that is, if the handler's arguments point into
 * it. */
static inline bool arch_is_signal_frame_at(uintptr_t frame, const siginfo_t *info,
                                           const ucontext_t *context) {
    return (uintptr_t)context == frame + FRAME_CONTEXT && (uintptr_t)info == frame + FRAME_INFO;
}

/* Returns the return address of the function whose __builtin_frame_address(0) is `frame`. */
static inline uintptr_t arch_return_of_frame(uintptr_t frame) {
    uintptr_t address;
    memcpy(&address, (const void *)(frame + sizeof frame), sizeof address);
    return address;
}

/* Returns true if the frame has the processor's state. */
static inline bool arch_has_frame_state(const ucontext_t *context) {
    return context->uc_mcontext.fpregs;
}

static inline uintptr_t arch_interrupted_sp(const ucontext_t *context) {
    return (uintptr_t)context->uc_mcontext.gregs[REG_RSP];
}

/* Raises SIGSEGV by a store to an address that the processor refuses, because it is not canonical.
 * If SIGSEGV is blocked, the kernel ends the process. */
__attribute__((noreturn)) static inline void arch_fault(void) {
    __asm__ volatile("movb $0, (%0)" : : "r"(UINT64_C(1) << 63) : "memory");
    __builtin_unreachable();
}

static inline size_t arch_state_bytes(const void *state) {
    struct {
        uint32_t magic1;
        uint32_t extended_size;
    } software;
    memcpy(&software, (const char *)state + STATE_SOFTWARE_BYTES, sizeof software);
    return software.magic1 == STATE_MAGIC1 ? software.extended_size : (size_t)STATE_WITHOUT_XSAVE;
}

/* Returns true if the thread has a shadow stack, which has the addresses that a handler and
 * rt_sigreturn must return to. On processors without shadow stacks the instruction has no
 * effect. */
static inline bool arch_has_shadow_stack(void) {
    uint64_t pointer = 0;
    __asm__ volatile(".byte 0xf3, 0x48, 0x0f, 0x1e, 0xc8" : "+a"(pointer)); /* rdsspq %rax */
    return pointer != 0;
}

/* Describes where the kernel would write the signal frame of `context` below `top`: the upper end
 * of an alternate stack, or the interrupted stack pointer minus the red zone. */
struct signal_frame_place {
    uintptr_t frame;
    uintptr_t state;
    size_t state_bytes;
};
static inline struct signal_frame_place arch_place_signal_frame(uintptr_t top,
                                                                const ucontext_t *context) {
    const size_t bytes = arch_state_bytes(context->uc_mcontext.fpregs);
    const uintptr_t state = (top - bytes) & -(uintptr_t)FRAME_STATE_ALIGNMENT;
    return (struct signal_frame_place){((state - FRAME_BYTES) & -(uintptr_t)16) - 8, state, bytes};
}

/* Stores the program's `stack` in the frame's ucontext. Stores `note` and a check of it in the 16
 * bytes of the kernel's padding between the frame and the state. */
static inline void arch_keep_signal_frame(uintptr_t frame, const stack_t *stack, void *note) {
    ((ucontext_t *)(frame + FRAME_CONTEXT))->uc_stack = *stack;
    const uintptr_t notes[2] = {(uintptr_t)note, (uintptr_t)note ^ frame};
    memcpy((void *)(frame + FRAME_BYTES), notes, sizeof notes);
}

/* Copies the frame to the place, with the changes of arch_keep_signal_frame(). */
static inline void arch_move_signal_frame(const struct signal_frame_place *place, uintptr_t frame,
                                          const stack_t *stack, void *note) {
    const ucontext_t *const from = (const ucontext_t *)(frame + FRAME_CONTEXT);
    ucontext_t *const to = (ucontext_t *)(place->frame + FRAME_CONTEXT);
    memcpy((void *)place->state, from->uc_mcontext.fpregs, place->state_bytes);
    memcpy((void *)place->frame, (const void *)frame, FRAME_BYTES);
    to->uc_mcontext.fpregs = (fpregset_t)place->state;
    arch_keep_signal_frame(place->frame, stack, note);
}

/* Returns the note of the frame that has this ucontext. The program may have overwritten it.
 */
static inline void *arch_moved_frame_note(const ucontext_t *context) {
    void *note;
    memcpy(&note, (const char *)context - FRAME_CONTEXT + FRAME_BYTES, sizeof note);
    return note;
}

/* Returns true if the note is unchanged since it was stored. */
static inline bool arch_is_noted(const ucontext_t *context) {
    const uintptr_t frame = (uintptr_t)context - FRAME_CONTEXT;
    uintptr_t notes[2];
    memcpy(notes, (const void *)(frame + FRAME_BYTES), sizeof notes);
    return notes[1] == (notes[0] ^ frame);
}

/* Returns the value of REG_CSGSFS with which the program's handler begins: the segments of the
 * entry's code. The interrupted code may be 32-bit code, which has other segments. */
static inline greg_t arch_handler_segments(greg_t interrupted) {
    const uint64_t kept = UINT64_C(0x0000ffffffff0000); /* gs, fs */
    uint32_t code;
    uint32_t stack;
    __asm__ volatile("movl %%cs, %0\n\tmovl %%ss, %1" : "=r"(code), "=r"(stack));
    return (greg_t)(((uint64_t)interrupted & kept) | (code & 0xffff) |
                    (uint64_t)(stack & 0xffff) << 48);
}

/* Fills in a ucontext by which rt_sigreturn begins the handler on that frame as the kernel does
 * (setup_rt_frame): with the interrupted registers except for the arguments, the flags and segments
 * that a function may expect, the usual floating-point environment, and `mask`. `begin` has
 * CONTEXT_BYTES. */
static inline void arch_begin_handler(ucontext_t *begin, const ucontext_t *interrupted, int number,
                                      uintptr_t handler, uintptr_t frame, uint64_t mask) {
    enum { TRAP = 0x100, DIRECTION = 0x400, RESUME = 0x10000 };
    const uintptr_t info = frame + FRAME_INFO;
    const uintptr_t context = frame + FRAME_CONTEXT;
    greg_t *const registers = begin->uc_mcontext.gregs;
    memcpy(begin, interrupted, CONTEXT_BYTES);
    registers[REG_RDI] = number;
    registers[REG_RSI] = (greg_t)info;
    registers[REG_RDX] = (greg_t)context;
    registers[REG_RAX] = 0;
    registers[REG_RSP] = (greg_t)frame;
    registers[REG_RIP] = (greg_t)handler;
    registers[REG_CSGSFS] = arch_handler_segments(registers[REG_CSGSFS]);
    registers[REG_EFL] &= ~(greg_t)(TRAP | DIRECTION | RESUME);
    begin->uc_mcontext.fpregs = NULL;
    memcpy(&begin->uc_sigmask, &mask, sizeof mask);
}

/* Makes the handler that `begin` begins on `frame` return to `returns_to`. */
static inline void arch_return_handler_to(ucontext_t *begin, uintptr_t frame,
                                          void (*returns_to)(void)) {
    (void)begin;
    memcpy((void *)frame, &returns_to, sizeof returns_to);
}

/* Returns the address of the C library's rt_sigreturn, which it has set for the signal `number`; 0
 * if the signal has none. */
static inline uintptr_t arch_signal_restorer(int number) {
    enum { HAS_RESTORER = 0x04000000 }; /* SA_RESTORER */
    struct {
        uintptr_t handler;
        unsigned long flags;
        uintptr_t restorer;
        uint64_t mask;
    } action = {0};
    const long failed =
        arch_system_call(SYS_rt_sigaction, number, 0, (long)&action, sizeof action.mask, 0, 0);
    return !failed && (action.flags & HAS_RESTORER) ? action.restorer : 0;
}

/* Makes a system call with the stack pointer `sp`, where nothing is stored. Every signal is
 * blocked: the kernel writes no frame there. */
static inline long arch_system_call_at(uintptr_t sp, long number, long a, long b) {
    long result;
    __asm__ volatile("xchgq %%rsp, %1\n\t"
                     "syscall\n\t"
                     "movq %1, %%rsp"
                     : "=a"(result), "+&r"(sp)
                     : "0"(number), "D"(a), "S"(b)
                     : "rcx", "r11", "memory");
    return result;
}

/* Defines `sigreturn`, which makes the system call rt_sigreturn by an instruction of the
 * profiler. */
#define ARCH_DEFINE_SIGRETURN(sigreturn)                                                           \
    __attribute__((naked)) static void sigreturn(void) {                                           \
        __asm__ volatile("movq $15, %rax\n\t" /* rt_sigreturn */                                   \
                         "syscall\n\t"                                                             \
                         "ud2");                                                                   \
    }

/* Defines `entry`, a handler for sigaction(2), which must be entered with every signal blocked. It
 * calls uintptr_t enter(int number, siginfo_t *info, ucontext_t *context, unsigned which, uintptr_t
 * frame, ucontext_t *begin). If that returns 0 it goes on as `*begin` says, in one step of the
 * kernel's, by the function whose address is in the variable `sigreturn`; else it jumps to the
 * function at that address, with the arguments as they came. */
#define ARCH_DEFINE_HANDLER_ENTRY(entry, which, enter, sigreturn)                                  \
    __attribute__((naked)) static void entry(__attribute__((unused)) int number,                   \
                                             __attribute__((unused)) siginfo_t *info,              \
                                             __attribute__((unused)) void *context) {              \
        __asm__ volatile("movl %0, %%ecx\n\t"                                                      \
                         "movq %%rsp, %%r8\n\t"                                                    \
                         "pushq %%rdi\n\t"                                                         \
                         "pushq %%rsi\n\t"                                                         \
                         "pushq %%rdx\n\t"                                                         \
                         "subq %1, %%rsp\n\t"                                                      \
                         ".cfi_adjust_cfa_offset 24 + %c1\n\t"                                     \
                         "movq %%rsp, %%r9\n\t"                                                    \
                         "call " #enter "\n\t"                                                     \
                         "testq %%rax, %%rax\n\t"                                                  \
                         "jnz 1f\n\t"                                                              \
                         "jmp *" #sigreturn "(%%rip)\n"                                            \
                         "1:\n\t"                                                                  \
                         "addq %1, %%rsp\n\t"                                                      \
                         "popq %%rdx\n\t"                                                          \
                         "popq %%rsi\n\t"                                                          \
                         "popq %%rdi\n\t"                                                          \
                         ".cfi_adjust_cfa_offset -24 - %c1\n\t"                                    \
                         "jmp *%%rax"                                                              \
                         :                                                                         \
                         : "i"(which), "i"(CONTEXT_BYTES));                                        \
    }

/* Writes a rule by which an unwinder finds the registers of the interrupted code: each register is
 * in the ucontext, which is at the stack pointer (DWARF 5, 6.4.2; register numbers of the psABI,
 * figure 3.36). */
#define ARCH_SAVED(number, offset)                                                                 \
    ".cfi_escape 0x10, " #number ", 3, 0x77, (" #offset ") & 0x7f | 0x80, (" #offset ") >> 7\n\t"
#define ARCH_SIGNAL_FRAME_RULES                                                                    \
    ".cfi_signal_frame\n\t"                                                                        \
    ".cfi_escape 0x0f, 4, 0x77, 160 & 0x7f | 0x80, 160 >> 7, 0x06\n\t" /* CFA: what is at rsp +    \
                                                                          160 */                   \
        ARCH_SAVED(8, 40) ARCH_SAVED(9, 48) ARCH_SAVED(10, 56) ARCH_SAVED(11, 64)                  \
            ARCH_SAVED(12, 72) ARCH_SAVED(13, 80) ARCH_SAVED(14, 88) ARCH_SAVED(15, 96)            \
                ARCH_SAVED(5, 104) ARCH_SAVED(4, 112) ARCH_SAVED(6, 120) ARCH_SAVED(3, 128)        \
                    ARCH_SAVED(1, 136) ARCH_SAVED(0, 144) ARCH_SAVED(2, 152) ARCH_SAVED(7, 160)    \
                        ARCH_SAVED(16, 168)

/* Defines `returns`, to which a handler returns on a moved frame: it calls void leave(ucontext_t
 * *context), whose return address replaces that of the handler, and has the kernel restore the
 * registers. The nop is there because unwinders look up the address before a return address. The
 * first instruction is the same as that of libc's own trampoline (arch_is_signal_return()). */
#define ARCH_DEFINE_HANDLER_RETURN(returns, leave, sigreturn)                                      \
    void returns(void);                                                                            \
    __asm__(".pushsection .text." #returns ",\"ax\",@progbits\n"                                   \
            ".local " #returns "\n"                                                                \
            ".type " #returns ",@function\n\t"                                                     \
            ".cfi_startproc\n\t" ARCH_SIGNAL_FRAME_RULES "nop\n" #returns ":\n\t"                  \
            "movq $15, %rax\n\t"                                                                   \
            "movq %rsp, %rdi\n\t"                                                                  \
            "call " #leave "\n\t"                                                                  \
            "jmp *" #sigreturn "(%rip)\n\t"                                                        \
            ".cfi_endproc\n\t"                                                                     \
            ".size " #returns ", . - " #returns "\n"                                               \
            ".popsection\n")

#endif
