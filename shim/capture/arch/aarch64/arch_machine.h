/* Reads and sets state of the processor that C cannot express, for the calling thread.
 *
 * Sources: DWARF for the Arm 64-bit Architecture, 4.1; Procedure Call Standard for the Arm 64-bit
 * Architecture (6.1).
 * Context: any. Async-signal-safe: yes.
 */
#ifndef OTELPROF_ARCH_MACHINE_H
#define OTELPROF_ARCH_MACHINE_H

#include "arch_registers.h"

#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Reads the registers at this place: the callee-saved registers, the stack pointer and the program
 * counter; the others are 0. This is a macro, because the frame must be the caller's own. */
#define REGISTERS_HERE(registers)                                                                  \
    do {                                                                                           \
        memset((registers), 0, sizeof(uint64_t) * REGISTER_COUNT);                                 \
        __asm__ volatile("stp x19, x20, [%0, #19*8]\n\t"                                           \
                         "stp x21, x22, [%0, #21*8]\n\t"                                           \
                         "stp x23, x24, [%0, #23*8]\n\t"                                           \
                         "stp x25, x26, [%0, #25*8]\n\t"                                           \
                         "stp x27, x28, [%0, #27*8]\n\t"                                           \
                         "stp x29, x30, [%0, #29*8]\n\t"                                           \
                         "mov x16, sp\n\t"                                                         \
                         "adr x17, .\n\t"                                                          \
                         "stp x16, x17, [%0, #31*8]"                                               \
                         :                                                                         \
                         : "r"(registers)                                                          \
                         : "x16", "x17", "memory");                                                \
    } while (0)

/* Returns the stack pointer that the function has been entered with, as a function without a frame
 * of its own keeps it. This is a macro, because the frame must be the function's own. */
#define arch_entry_sp() ((uintptr_t)__builtin_dwarf_cfa())

/* Begins and ends floating-point arithmetic of the profiler on the program's threads, which must
 * not raise exceptions that the program tests (fetestexcept) or traps (feenableexcept): saves the
 * thread's control and status registers and sets the default. The arithmetic must be in a function
 * that is not inlined, or the compiler may move it. Linux does not set the default for a signal
 * handler here, so a handler needs these calls, too. */
static inline uint64_t floats_begin(void) {
    uint64_t control;
    uint64_t status;
    __asm__ volatile("mrs %0, fpcr\n\t"
                     "mrs %1, fpsr\n\t"
                     "msr fpcr, xzr"
                     : "=r"(control), "=r"(status)
                     :
                     : "memory");
    return control << 32 | status;
}
static inline void floats_end(uint64_t before) {
    __asm__ volatile("msr fpcr, %0\n\t"
                     "msr fpsr, %1"
                     :
                     : "r"(before >> 32), "r"(before & UINT32_MAX)
                     : "memory");
}

/* Resets the control register of floating-point arithmetic on a thread of the profiler's, which has
 * inherited it from its creator. */
static inline void floats_reset(void) {
    (void)floats_begin();
}

/* Returns the address of the calling thread's control block. By TLS variant I the static TLS lies
 * above it. glibc puts both, and the thread's descriptor below, at the top of the thread's stack
 * block, so reads of the stack end at this address. */
static inline uintptr_t thread_pointer(void) {
    return (uintptr_t)__builtin_thread_pointer();
}

/* Returns true if `offset` may lead from the thread pointer to static TLS of at most `most` bytes:
 * TLS variant I has it above the control block, which has two words. */
static inline bool thread_offset_is_static(intptr_t offset, size_t most) {
    return offset >= 2 * (intptr_t)sizeof(uintptr_t) && (uintptr_t)offset <= most;
}

/* Bounds the offset of static TLS in a descriptor: a larger one is not plausible. A descriptor may
 * also lead to the heap of an executable at its usual address, 4 MiB. */
enum { THREAD_MOST_OFFSET = 1 << 21 };

/* States where glibc's descriptor of a thread may have the values of keys, in bytes from its
 * beginning: behind its header (nptl/descr.h). */
enum { THREAD_DESCRIPTOR_LOW = 192 };

/* Sets the number of words that identify a dynamic thread vector: the two words before it, and its
 * first word. */
enum { THREAD_VECTOR_HEAD = 3, THREAD_VECTOR_MOST_MODULES = 1 << 20 };

/* Returns the place of the pointer to the vector in the control block of the thread with that
 * thread pointer. */
static inline uintptr_t thread_vector_place(uintptr_t pointer) {
    return pointer;
}

/* Returns the place of a module's block in the vector; UINTPTR_MAX or 0 there: the module has no
 * block. */
static inline uintptr_t thread_vector_entry(uintptr_t vector, uint64_t module) {
    return vector + 2 * sizeof(uintptr_t) * module;
}

/* Returns true if `head` is the head of a vector that has an entry for the module, brought up to
 * `generation`: see thread_vector_block(). */
static inline bool thread_vector_has(const uintptr_t head[THREAD_VECTOR_HEAD], uint64_t module,
                                     uint64_t generation) {
    return head[1] == 0 && head[0] <= THREAD_VECTOR_MOST_MODULES && module <= head[0] &&
           head[2] >= generation;
}

/* Returns the calling thread's block of thread-local variables of the module with that number, from
 * its dynamic thread vector; 0: none yet. In glibc (sysdeps/aarch64/nptl/tls.h,
 * sysdeps/generic/dl-dtv.h) the first word of the thread control block points to pairs of words.
 * The file of x86_64 explains the rest. */
static inline uintptr_t thread_vector_block(uint64_t module, uint64_t generation) {
    const uintptr_t vector = *(const uintptr_t *)thread_vector_place(thread_pointer());
    if (!vector)
        return 0;
    const uintptr_t *const end = (const uintptr_t *)vector + 1;
    if (!thread_vector_has(end - THREAD_VECTOR_HEAD, module, generation))
        return 0;
    const uintptr_t block = *(const uintptr_t *)thread_vector_entry(vector, module);
    return block == UINTPTR_MAX ? 0 : block;
}

/* Returns the stack pointer that longjmp() to the target sets. glibc stores that register combined
 * with a secret word of the loader (sysdeps/aarch64/jmpbuf-offsets.h, setjmp.S), which a second
 * buffer reveals: that of a jump to this place, whose stack pointer is known. */
static inline uintptr_t arch_jump_stack_pointer(const struct __jmp_buf_tag *target) {
    enum { JUMP_SP = 13 };
    struct __jmp_buf_tag here;
    uintptr_t sp;
    register struct __jmp_buf_tag *x0 __asm__("x0") = &here;
    register long x1 __asm__("x1") = 0;
    __asm__ volatile("mov %0, sp\n\t"
                     "bl __sigsetjmp"
                     : "=&r"(sp), "+r"(x0), "+r"(x1)
                     :
                     : "x2", "x3", "x4", "x5", "x6", "x7", "x8", "x9", "x10", "x11", "x12", "x13",
                       "x14", "x15", "x16", "x17", "x18", "x30", "v0", "v1", "v2", "v3", "v4", "v5",
                       "v6", "v7", "v16", "v17", "v18", "v19", "v20", "v21", "v22", "v23", "v24",
                       "v25", "v26", "v27", "v28", "v29", "v30", "v31", "cc", "memory");
    const uintptr_t secret = (uintptr_t)here.__jmpbuf[JUMP_SP] ^ sp;
    return (uintptr_t)target->__jmpbuf[JUMP_SP] ^ secret;
}

/* Zeroes memory without libc's memset(), which the loader would have to look up at each start.
 */
static inline void memory_clear(void *memory, size_t size) {
    uint8_t *const bytes = memory;
    for (size_t i = 0; i < size; i++) {
        bytes[i] = 0;
        __asm__ volatile("" : : : "memory"); /* or the compiler calls memset() */
    }
}

#endif
