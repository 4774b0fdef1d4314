/* Reads and sets state of the processor that C cannot express, for the calling thread.
 *
 * Source: System V psABI for AMD64 (figure 3.36, 3.2.3).
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

/* Reads the registers at this place: the callee-saved registers, rsp and rip; the others are 0.
 * This is a macro, because the frame must be the caller's own. */
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

/* Returns the stack pointer that the function has been entered with, as a function without a frame
 * of its own keeps it. This is a macro, because the frame must be the function's own. */
#define arch_entry_sp() ((uintptr_t)__builtin_dwarf_cfa() - sizeof(uintptr_t))

/* Begins and ends floating-point arithmetic of the profiler on the program's threads, which must
 * not raise exceptions that the program tests (fetestexcept) or traps (feenableexcept): saves the
 * thread's control and status word and sets the default (psABI 3.2.3). The arithmetic must be in a
 * function that is not inlined, or the compiler may move it. A signal handler needs no such calls,
 * because the kernel sets the default for it. */
static inline uint64_t floats_begin(void) {
    const uint32_t usual = 0x1f80; /* all exceptions masked, none raised, round to nearest */
    uint32_t before;
    __asm__ volatile("stmxcsr %0\n\tldmxcsr %1" : "=m"(before) : "m"(usual) : "memory");
    return before;
}
static inline void floats_end(uint64_t before) {
    const uint32_t word = (uint32_t)before;
    __asm__ volatile("ldmxcsr %0" : : "m"(word) : "memory");
}

/* Resets the control words of floating-point arithmetic, x87 and SSE, on a thread of the
 * profiler's, which has inherited them from its creator. */
static inline void floats_reset(void) {
    __asm__ volatile("fninit" : : : "memory");
    (void)floats_begin();
}

/* Returns the address of the calling thread's control block. By TLS variant II it lies above the
 * static TLS, and glibc puts both at the top of the thread's stack block, so reads of the stack end
 * at this address. */
static inline uintptr_t thread_pointer(void) {
    return (uintptr_t)__builtin_thread_pointer();
}

/* Returns true if `offset` may lead from the thread pointer to static TLS of at most `most` bytes:
 * TLS variant II has it below. */
static inline bool thread_offset_is_static(intptr_t offset, size_t most) {
    return offset < 0 && (uintptr_t)-offset <= most;
}

/* Bounds the offset of static TLS in a descriptor: a larger one is not plausible. */
enum { THREAD_MOST_OFFSET = 1 << 30 };

/* States where glibc's descriptor of a thread may have the values of keys, in bytes from its
 * beginning: behind its header (nptl/descr.h). */
enum { THREAD_DESCRIPTOR_LOW = 704 };

/* Sets the number of words that identify a dynamic thread vector: the two words before it, and its
 * first word. */
enum { THREAD_VECTOR_HEAD = 3, THREAD_VECTOR_MOST_MODULES = 1 << 20 };

/* Returns the place of the pointer to the vector in the control block of the thread with that
 * thread pointer. */
static inline uintptr_t thread_vector_place(uintptr_t pointer) {
    return pointer + sizeof(uintptr_t);
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
 * its dynamic thread vector; 0: none yet. In glibc (sysdeps/x86_64/nptl/tls.h,
 * sysdeps/generic/dl-dtv.h) the second word of the thread control block points to pairs of words.
 * Pair 0 has the vector's generation; the pair before it has the number of pairs, and a 0; a block
 * that is not allocated is -1. While the loader moves a vector that grows, the thread control block
 * leads to memory that has just been freed, where malloc has overwritten the pair with the number:
 * its first word may resemble a number (a mangled pointer into a heap at a low address), but no 0
 * follows it. Before `generation` the module's number belonged to another module, whose block may
 * still be in the vector. (musl's vector is in the same place, has single words, and its length in
 * the first word.) */
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

/* Returns the stack pointer that longjmp() to the target sets. glibc stores that register rotated,
 * and combined with a word of the thread control block (sysdeps/x86_64/jmpbuf-offsets.h,
 * sysdeps/unix/sysv/linux/x86_64/pointer_guard.h). */
static inline uintptr_t arch_jump_stack_pointer(const struct __jmp_buf_tag *target) {
    enum { JUMP_SP = 6, ROTATED_BY = 17, WORD_BITS = 64 };
    uintptr_t guard;
    const uintptr_t stored = (uintptr_t)target->__jmpbuf[JUMP_SP];
    __asm__("movq %%fs:0x30, %0" : "=r"(guard));
    return (stored >> ROTATED_BY | stored << (WORD_BITS - ROTATED_BY)) ^ guard;
}

/* Zeroes memory without libc's memset(), which the loader would have to look up at each start.
 */
static inline void memory_clear(void *memory, size_t size) {
    __asm__ volatile("rep stosb" : "+D"(memory), "+c"(size) : "a"(0) : "memory");
}

#endif
