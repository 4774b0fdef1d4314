/* Detects a processor that QEMU's code generator (TCG) emulates, by the name in the CPUID leaf of
 * hypervisors. QEMU gives this name to whole machines and to single programs (qemu-x86_64): the
 * caller must distinguish the two. Without a hypervisor a processor returns numbers of another
 * leaf. In a virtual machine the instruction costs an exit of about a microsecond. Context: any.
 */
#ifndef OTELPROF_ARCH_EMULATOR_H
#define OTELPROF_ARCH_EMULATOR_H

#include <cpuid.h>
#include <stdbool.h>
#include <string.h>

static inline bool arch_cpu_is_emulated(void) {
    static const char name[] = "TCGTCGTCGTCG";
    unsigned highest;
    unsigned words[3];
    __cpuid(0x40000000, highest, words[0], words[1], words[2]);
    return memcmp(words, name, sizeof words) == 0;
}

#endif
