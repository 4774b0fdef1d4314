/* Reads the calling thread's register for thread-local storage without reading the storage:
 * programs that run foreign code (Wine, DynamoRIO) may have set the register to any address.
 *
 * Sources: Intel SDM, RDFSBASE; Linux Documentation/arch/x86/x86_64/fsgs.rst; arch_prctl(2).
 */
#ifndef OTELPROF_ARCH_THREAD_BASE_H
#define OTELPROF_ARCH_THREAD_BASE_H

#include "arch_syscall.h"
#include "seccomp_state.h"

#include <asm/prctl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/auxv.h>
#include <sys/syscall.h>

/* Returns whether the kernel lets programs use the instruction (Linux 5.9). Context: any. */
static inline bool arch_has_thread_base(void) {
    enum { FSGSBASE = 1 << 1 }; /* HWCAP2_FSGSBASE */
    return getauxval(AT_HWCAP2) & FSGSBASE;
}

/* Returns the value of the register; 0 if it is unknown, because the instruction is missing and a
 * filter of system calls is present. Context: any. Async-signal-safe: yes. Uses no thread-local
 * variable. */
static inline uintptr_t arch_thread_base(bool has_instruction) {
    uintptr_t base = 0;
    if (has_instruction)
        __asm__ volatile(".byte 0xf3, 0x48, 0x0f, 0xae, 0xc0" : "=a"(base)); /* rdfsbase %rax */
    else if (!seccomp_is_filtered())
        (void)arch_system_call(SYS_arch_prctl, ARCH_GET_FS, (long)&base, 0, 0, 0, 0);
    return base;
}

/* Returns whether libc's control block may be at `base`: the block contains its own address twice.
 * `is_readable` checks the page of an address. */
static inline bool arch_is_control_block(uintptr_t base, bool (*is_readable)(uintptr_t address)) {
    const uintptr_t *const words = (const uintptr_t *)base; /* tcbhead_t: tcb, dtv, self */
    return base % sizeof *words == 0 && is_readable(base) && is_readable((uintptr_t)&words[2]) &&
           words[0] == base && words[2] == base;
}

/* Computes the distance from the base to a thread-local variable of the initial-exec model. */
#define ARCH_THREAD_OFFSET(variable)                                                               \
    __extension__({                                                                                \
        intptr_t offset;                                                                           \
        __asm__("movq " #variable "@gottpoff(%%rip), %0" : "=r"(offset));                          \
        offset;                                                                                    \
    })

#endif
