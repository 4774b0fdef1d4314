/* Reads the calling thread's register for thread-local storage without reading the storage:
 * programs that run foreign code (DynamoRIO) may have set the register to any address.
 *
 * Sources: Arm Architecture Reference Manual, TPIDR_EL0; glibc sysdeps/aarch64/nptl/tls.h,
 * sysdeps/generic/dl-dtv.h.
 */
#ifndef OTELPROF_ARCH_THREAD_BASE_H
#define OTELPROF_ARCH_THREAD_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Returns whether programs may use the instruction: always. Context: any. */
static inline bool arch_has_thread_base(void) {
    return true;
}

/* Returns the value of the register. Context: any. Async-signal-safe: yes. Uses no thread-local
 * variable. */
static inline uintptr_t arch_thread_base(bool has_instruction) {
    uintptr_t base;
    (void)has_instruction;
    __asm__ volatile("mrs %0, tpidr_el0" : "=r"(base));
    return base;
}

/* Returns whether libc's control block may be at `base`. Its first word points to the thread's
 * vector of blocks; right below that is the vector's length, and a 0. */
static inline bool arch_is_control_block(uintptr_t base, bool (*is_readable)(uintptr_t address)) {
    enum { MOST_MODULES = 1 << 20 };
    if (!base || base % sizeof(uintptr_t) || !is_readable(base))
        return false;
    const uintptr_t vector = *(const uintptr_t *)base;
    const uintptr_t length = vector - 2 * sizeof(uintptr_t);
    if (!vector || vector % sizeof(uintptr_t) || !is_readable(length) ||
        !is_readable(length + sizeof(uintptr_t)))
        return false;
    const uintptr_t *const words = (const uintptr_t *)length;
    return words[0] <= MOST_MODULES && words[1] == 0;
}

/* Computes the distance from the base to a thread-local variable of the initial-exec model. */
#define ARCH_THREAD_OFFSET(variable)                                                               \
    __extension__({                                                                                \
        intptr_t offset;                                                                           \
        __asm__("adrp %0, :gottprel:" #variable "\n\t"                                             \
                "ldr %0, [%0, :gottprel_lo12:" #variable "]"                                       \
                : "=r"(offset));                                                                   \
        offset;                                                                                    \
    })

#endif
