/* Detects a processor that QEMU's code generator (TCG) emulates. AArch64 has no leaf for
 * hypervisors: the identification registers that programs may read are those of the emulated
 * processor. So QEMU is never detected. Context: any.
 */
#ifndef OTELPROF_ARCH_EMULATOR_H
#define OTELPROF_ARCH_EMULATOR_H

#include <stdbool.h>

static inline bool arch_cpu_is_emulated(void) {
    return false;
}

#endif
