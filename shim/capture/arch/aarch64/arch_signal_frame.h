/* Moves a signal's frame, which the kernel has written onto a stack of the profiler, to the place
 * that it would have without the profiler.
 *
 * From below: the siginfo; the ucontext, which ends with records of the processor's state; more
 * state, if the records do not have room for it (SVE, SME); and a frame record (x29, x30), to which
 * the handler's x29 points. The handler's return address is in x30 alone.
 * Sources: Linux arch/arm64/kernel/signal.c (struct rt_sigframe, get_sigframe, setup_return,
 * parse_user_sigframe), arch/arm64/include/uapi/asm/sigcontext.h.
 * Context: any. Async-signal-safe: yes.
 */
#ifndef OTELPROF_ARCH_SIGNAL_FRAME_H
#define OTELPROF_ARCH_SIGNAL_FRAME_H

#include "arch_code.h"
#include "arch_forward.h"
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
    ARCH_LEAST_STACK_BYTES = 5120,
    FRAME_INFO = 0,
    FRAME_CONTEXT = FRAME_INFO + (int)sizeof(siginfo_t),
    CONTEXT_BYTES = sizeof(ucontext_t), /* 4560, as the kernel's */
    FRAME_BYTES = FRAME_CONTEXT + CONTEXT_BYTES,
    FRAME_RED_ZONE = 0,
    /* The kernel uses 64 bits of the mask. The last two words of libc's mask have the note. */
    FRAME_NOTE = offsetof(ucontext_t, uc_mcontext) - 24,
    STATE_FLOATS = 0x46508001, /* FPSIMD_MAGIC */
    STATE_EXTRA = 0x45585401,  /* EXTRA_MAGIC */
    STATE_RECORD_BYTES = 8,    /* magic and size */
};
_Static_assert(sizeof(siginfo_t) == 128 && CONTEXT_BYTES == 4560 && FRAME_NOTE >= 48 &&
                   FRAME_NOTE % 8 == 0,
               "as the kernel lays it out");

/* Returns true if the kernel's frame is at `frame`, that is, if the handler's arguments point into
 * it. */
static inline bool arch_is_signal_frame_at(uintptr_t frame, const siginfo_t *info,
                                           const ucontext_t *context) {
    return (uintptr_t)context == frame + FRAME_CONTEXT && (uintptr_t)info == frame + FRAME_INFO;
}

/* Returns true if the frame has the processor's state: always. */
static inline bool arch_has_frame_state(const ucontext_t *context) {
    (void)context;
    return true;
}

/* Returns the return address of the function whose __builtin_frame_address(0) is `frame`. */
static inline uintptr_t arch_return_of_frame(uintptr_t frame) {
    uintptr_t address;
    memcpy(&address, (const void *)(frame + sizeof frame), sizeof address);
    return arch_return_address(address);
}

static inline uintptr_t arch_interrupted_sp(const ucontext_t *context) {
    return (uintptr_t)context->uc_mcontext.sp;
}

/* Raises SIGSEGV by a store to an address that the processor refuses, because it belongs to neither
 * half of the address space. If SIGSEGV is blocked, the kernel ends the process. */
__attribute__((noreturn)) static inline void arch_fault(void) {
    __asm__ volatile("strb wzr, [%0]" : : "r"(UINT64_C(1) << 54) : "memory");
    __builtin_unreachable();
}

/* Returns the record of the processor's state with that number, whose size is then at least
 * `bytes`; NULL: there is none. */
static inline uint8_t *arch_state_record(const ucontext_t *context, uint32_t wanted, size_t bytes) {
    const uint8_t *const records = (const uint8_t *)context->uc_mcontext.__reserved;
    const size_t room = sizeof context->uc_mcontext.__reserved;
    uint32_t head[2]; /* magic, size */
    for (size_t at = 0; at + STATE_RECORD_BYTES <= room; at += head[1]) {
        memcpy(head, records + at, sizeof head);
        if (head[0] == 0 || head[1] < STATE_RECORD_BYTES || head[1] > room - at)
            return NULL;
        if (head[0] == wanted)
            return head[1] >= bytes ? (uint8_t *)(uintptr_t)(records + at) : NULL;
    }
    return NULL;
}

/* Describes further state, which may lie behind the ucontext (struct extra_context). */
struct signal_frame_extra {
    uint64_t head;
    uint64_t place;
    uint32_t bytes;
    uint32_t reserved[3];
};

/* Returns the size of the frame at `frame` without its frame record. Further state begins within
 * the ucontext, behind the records, and may end above it. */
static inline size_t arch_frame_bytes(uintptr_t frame) {
    const ucontext_t *const context = (const ucontext_t *)(frame + FRAME_CONTEXT);
    struct signal_frame_extra extra;
    const uint8_t *const record = arch_state_record(context, STATE_EXTRA, sizeof extra);
    if (!record)
        return FRAME_BYTES;
    memcpy(&extra, record, sizeof extra);
    const uintptr_t end = (uintptr_t)extra.place + extra.bytes;
    const size_t bytes = end > frame ? (end - frame + (size_t)15) & ~(size_t)15 : 0;
    return bytes > FRAME_BYTES ? bytes : FRAME_BYTES;
}

/* Returns true if the thread has a shadow stack, which has the addresses that a handler and
 * rt_sigreturn must return to: Linux gives none unless the program asks for one
 * (PR_SET_SHADOW_STACK_STATUS). */
static inline bool arch_has_shadow_stack(void) {
    register uint64_t has __asm__("x16") = 1;
    __asm__ volatile("hint #40" : "+r"(has)); /* chkfeat x16: clears the bit if it has */
    return has == 0;
}

/* Describes where the kernel would write the signal frame of `context` below `top`: the upper end
 * of an alternate stack, or the interrupted stack pointer. */
struct signal_frame_place {
    uintptr_t frame;
    size_t bytes; /* of the frame without its frame record */
};
static inline struct signal_frame_place arch_place_signal_frame(uintptr_t top,
                                                                const ucontext_t *context) {
    enum { FRAME_RECORD_BYTES = 16 };
    const size_t bytes = arch_frame_bytes((uintptr_t)context - FRAME_CONTEXT);
    const uintptr_t record = (top - FRAME_RECORD_BYTES) & -(uintptr_t)16;
    return (struct signal_frame_place){record - bytes, bytes};
}

/* Stores the program's `stack` in the frame's ucontext, and `note` and a check of it. */
static inline void arch_keep_signal_frame(uintptr_t frame, const stack_t *stack, void *note) {
    const uintptr_t context = frame + FRAME_CONTEXT;
    ((ucontext_t *)context)->uc_stack = *stack;
    const uintptr_t notes[2] = {(uintptr_t)note, (uintptr_t)note ^ frame};
    memcpy((void *)(context + FRAME_NOTE), notes, sizeof notes);
}

/* Copies the frame to the place, with the changes of arch_keep_signal_frame(). */
static inline void arch_move_signal_frame(const struct signal_frame_place *place, uintptr_t frame,
                                          const stack_t *stack, void *note) {
    const ucontext_t *const from = (const ucontext_t *)(frame + FRAME_CONTEXT);
    ucontext_t *const to = (ucontext_t *)(place->frame + FRAME_CONTEXT);
    const uint64_t record[2] = {from->uc_mcontext.regs[29], from->uc_mcontext.regs[30]};
    memcpy((void *)place->frame, (const void *)frame, place->bytes);
    memcpy((void *)(place->frame + place->bytes), record, sizeof record);
    struct signal_frame_extra extra;
    uint8_t *const extra_record = arch_state_record(to, STATE_EXTRA, sizeof extra);
    if (extra_record) {
        memcpy(&extra, extra_record, sizeof extra);
        extra.place += place->frame - frame;
        memcpy(extra_record, &extra, sizeof extra);
    }
    arch_keep_signal_frame(place->frame, stack, note);
}

/* Returns the note of the frame that has this ucontext. The program may have overwritten it.
 */
static inline void *arch_moved_frame_note(const ucontext_t *context) {
    void *note;
    memcpy(&note, (const char *)context + FRAME_NOTE, sizeof note);
    return note;
}

/* Returns true if the note is unchanged since it was stored. */
static inline bool arch_is_noted(const ucontext_t *context) {
    const uintptr_t frame = (uintptr_t)context - FRAME_CONTEXT;
    uintptr_t notes[2];
    memcpy(notes, (const char *)context + FRAME_NOTE, sizeof notes);
    return notes[1] == (notes[0] ^ frame);
}

/* Fills in a ucontext by which rt_sigreturn begins the handler on that frame as the kernel does
 * (setup_return): with the interrupted registers except for the arguments and those of the frame,
 * with the floating-point registers alone of the processor's state, and with `mask`. `begin` has
 * CONTEXT_BYTES; the entry has stored the handler's return address there. */
static inline void arch_begin_handler(ucontext_t *begin, const ucontext_t *interrupted, int number,
                                      uintptr_t handler, uintptr_t frame, uint64_t mask) {
    enum { FLOATS_BYTES = 528 }; /* struct fpsimd_context */
    const uint64_t branch_type = UINT64_C(3) << 10;
    const uint64_t tag_checks_off = UINT64_C(1) << 25; /* PSTATE.TCO */
    const uint64_t returns_to = begin->uc_mcontext.regs[30];
    const uint8_t *const floats = arch_state_record(interrupted, STATE_FLOATS, FLOATS_BYTES);
    uint8_t *const state = (uint8_t *)begin->uc_mcontext.__reserved;
    memcpy(begin, interrupted, offsetof(ucontext_t, uc_mcontext.__reserved));
    begin->uc_mcontext.regs[0] = (uint64_t)number;
    begin->uc_mcontext.regs[1] = frame + FRAME_INFO;
    begin->uc_mcontext.regs[2] = frame + FRAME_CONTEXT;
    begin->uc_mcontext.regs[29] = frame + arch_frame_bytes(frame);
    begin->uc_mcontext.regs[30] = returns_to;
    begin->uc_mcontext.sp = frame;
    begin->uc_mcontext.pc = handler;
    begin->uc_mcontext.pstate &= ~(branch_type | tag_checks_off);
    memcpy(&begin->uc_sigmask, &mask, sizeof mask);
    memset(state + (floats ? FLOATS_BYTES : 0), 0, 2 * STATE_RECORD_BYTES);
    if (floats)
        memcpy(state, floats, FLOATS_BYTES);
}

/* Makes the handler that `begin` begins return to `returns_to`. */
static inline void arch_return_handler_to(ucontext_t *begin, uintptr_t frame,
                                          void (*returns_to)(void)) {
    (void)frame;
    begin->uc_mcontext.regs[30] = (uintptr_t)returns_to;
}

/* Returns the address of the C library's rt_sigreturn, which it has set for the signal `number`; 0
 * if the signal has none. glibc sets none here: the kernel's own object has it. */
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
    register long x8 __asm__("x8") = number;
    register long x0 __asm__("x0") = a;
    register long x1 __asm__("x1") = b;
    __asm__ volatile("mov x16, sp\n\t"
                     "mov sp, %1\n\t"
                     "svc #0\n\t"
                     "mov sp, x16"
                     : "+r"(x0)
                     : "r"(sp), "r"(x8), "r"(x1)
                     : "x16", "memory");
    return x0;
}

/* Defines `sigreturn`, which makes the system call rt_sigreturn by an instruction of the
 * profiler. */
#define ARCH_DEFINE_SIGRETURN(sigreturn)                                                           \
    ARCH_BARE_FUNCTION static void sigreturn(void) {                                               \
        __asm__ volatile("mov x8, #139\n\t" /* rt_sigreturn */                                     \
                         "svc #0\n\t"                                                              \
                         "brk #1");                                                                \
        ARCH_NO_RETURN                                                                             \
    }

/* Defines `entry`, a handler for sigaction(2), which must be entered with every signal blocked. It
 * calls uintptr_t enter(int number, siginfo_t *info, ucontext_t *context, unsigned which, uintptr_t
 * frame, ucontext_t *begin). If that returns 0 it goes on as `*begin` says, in one step of the
 * kernel's, by the function whose address is in the variable `sigreturn`; else it jumps to the
 * function at that address, with the arguments as they came. `begin` lies in a frame of a signal as
 * rt_sigreturn reads it. The kernel passes info and context to a handler with SA_SIGINFO alone. So
 * if the entry returns to the trampoline of signals, by which the kernel has entered it, the two
 * are those of the frame. */
#define ARCH_DEFINE_HANDLER_ENTRY(entry, which, enter, sigreturn)                                  \
    void entry(int number, siginfo_t *info, void *context);                                        \
    void entry##_body(void) __asm__(#entry);                                                       \
    ARCH_BARE_FUNCTION void entry##_body(void) {                                                   \
        __asm__ volatile(                                                                          \
            "mov x4, sp\n\t"                                                                       \
            "ldr x6, [x30]\n\t"                                                                    \
            "mov x7, #0x1168\n\t"                                                                  \
            "movk x7, #0xd280, lsl #16\n\t"                                                        \
            "movk x7, #0x0001, lsl #32\n\t"                                                        \
            "movk x7, #0xd400, lsl #48\n\t"                                                        \
            "cmp x6, x7\n\t"                                                                       \
            "b.ne 2f\n\t"                                                                          \
            "add x1, x4, %[info]\n\t"                                                              \
            "add x2, x4, %[context]\n"                                                             \
            "2:\n\t"                                                                               \
            "stp x29, x30, [sp, #-48]!\n\t"                                                        \
            ".cfi_def_cfa_offset 48\n\t"                                                           \
            ".cfi_offset 29, -48\n\t"                                                              \
            ".cfi_offset 30, -40\n\t"                                                              \
            "mov x29, sp\n\t"                                                                      \
            ".cfi_def_cfa_register 29\n\t"                                                         \
            "stp x0, x1, [sp, #16]\n\t"                                                            \
            "str x2, [sp, #32]\n\t"                                                                \
            "mov x3, %[frame]\n\t"                                                                 \
            "sub sp, sp, x3\n\t"                                                                   \
            "add x5, sp, %[context]\n\t"                                                           \
            "str x30, [x5, %[link]]\n\t"                                                           \
            "mov w3, %[number]\n\t"                                                                \
            "bl " #enter "\n\t"                                                                    \
            "cbnz x0, 1f\n\t" ARCH_JUMP_THROUGH(#sigreturn) "1:\n\t"                               \
                                                            "mov x16, x0\n\t"                      \
                                                            "mov sp, x29\n\t"                      \
                                                            ".cfi_def_cfa_register 31\n\t"         \
                                                            "ldp x0, x1, [sp, #16]\n\t"            \
                                                            "ldr x2, [sp, #32]\n\t"                \
                                                            "ldp x29, x30, [sp], #48\n\t"          \
                                                            ".cfi_restore 29\n\t"                  \
                                                            ".cfi_restore 30\n\t"                  \
                                                            ".cfi_def_cfa_offset 0\n\t"            \
                                                            "br x16"                               \
            :                                                                                      \
            : [number] "i"(which), [frame] "i"(FRAME_BYTES), [info] "i"(FRAME_INFO),               \
              [context] "i"(FRAME_CONTEXT),                                                        \
              [link] "i"(offsetof(ucontext_t, uc_mcontext.regs[30])));                             \
        ARCH_NO_RETURN                                                                             \
    }

/* Writes a rule by which an unwinder finds the registers of the interrupted code: each register is
 * in the ucontext, which is behind the siginfo at the stack pointer (DWARF 5, 6.4.2). The
 * interrupted program counter has no register of its own: GCC's unwinder and others use 96. */
#define ARCH_SAVED(number, offset)                                                                 \
    ".cfi_escape 0x10, " #number ", 3, 0x8f, (" #offset ") & 0x7f | 0x80, (" #offset ") >> 7\n\t"
#define ARCH_SIGNAL_FRAME_RULES                                                                    \
    ".cfi_signal_frame\n\t"                                                                        \
    ".cfi_return_column 96\n\t"                                                                    \
    ".cfi_escape 0x0f, 4, 0x8f, 560 & 0x7f | 0x80, 560 >> 7, 0x06\n\t" /* CFA: what is at sp +     \
                                                                          560 */                   \
        ARCH_SAVED(0, 312) ARCH_SAVED(1, 320) ARCH_SAVED(2, 328) ARCH_SAVED(3, 336)                \
            ARCH_SAVED(4, 344) ARCH_SAVED(5, 352) ARCH_SAVED(6, 360) ARCH_SAVED(7, 368)            \
                ARCH_SAVED(8, 376) ARCH_SAVED(9, 384) ARCH_SAVED(10, 392) ARCH_SAVED(11, 400)      \
                    ARCH_SAVED(12, 408) ARCH_SAVED(13, 416) ARCH_SAVED(14, 424)                    \
                        ARCH_SAVED(15, 432) ARCH_SAVED(16, 440) ARCH_SAVED(17, 448)                \
                            ARCH_SAVED(18, 456) ARCH_SAVED(19, 464) ARCH_SAVED(20, 472)            \
                                ARCH_SAVED(21, 480) ARCH_SAVED(22, 488) ARCH_SAVED(23, 496)        \
                                    ARCH_SAVED(24, 504) ARCH_SAVED(25, 512) ARCH_SAVED(26, 520)    \
                                        ARCH_SAVED(27, 528) ARCH_SAVED(28, 536)                    \
                                            ARCH_SAVED(29, 544) ARCH_SAVED(30, 552)                \
                                                ARCH_SAVED(31, 560) ARCH_SAVED(96, 568)
_Static_assert(SIGNAL_FRAME_REGISTERS == 312 && SIGNAL_FRAME_SP == 560 && SIGNAL_FRAME_PC == 568,
               "as the rules say");

/* Defines `returns`, to which a handler returns on a moved frame: it calls void leave(ucontext_t
 * *context) and has the kernel restore the registers. The nop is there because unwinders look up
 * the address before a return address. */
#define ARCH_DEFINE_HANDLER_RETURN(returns, leave, sigreturn)                                      \
    void returns(void);                                                                            \
    __asm__(".pushsection .text." #returns ",\"ax\",@progbits\n"                                   \
            ".hidden " #returns "\n"                                                               \
            ".globl " #returns "\n"                                                                \
            ".type " #returns ",%function\n"                                                       \
            ".p2align 2\n\t"                                                                       \
            ".cfi_startproc\n\t" ARCH_SIGNAL_FRAME_RULES "nop\n" #returns ":\n\t"                  \
            "add x0, sp, #128\n\t"                                                                 \
            "bl " #leave "\n\t" ARCH_JUMP_THROUGH(#sigreturn) "\t.cfi_endproc\n\t"                 \
                                                              ".size " #returns ", . - " #returns  \
                                                              "\n"                                 \
                                                              ".popsection\n")

#endif
