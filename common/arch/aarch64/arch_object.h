/* Defines the constants of this architecture in ELF files, and its names.
 *
 * Sources: ELF for the Arm 64-bit Architecture (AArch64), 5.7 (relocations) and "GNU IFUNC"; glibc
 * sysdeps/aarch64/dl-irel.h; OpenTelemetry's attribute host.arch.
 */
#ifndef OTELPROF_ARCH_OBJECT_H
#define OTELPROF_ARCH_OBJECT_H

#include <elf.h>
#include <stdint.h>
#include <string.h>
#include <sys/auxv.h>

enum {
    ARCH_ELF_MACHINE = EM_AARCH64,
    /* Lists relocations that put a function's address into an object: into its PLT, its GOT, a
     * variable. */
    ARCH_RELOCATION_PLT = R_AARCH64_JUMP_SLOT,
    ARCH_RELOCATION_GOT = R_AARCH64_GLOB_DAT,
    ARCH_RELOCATION_DATA = R_AARCH64_ABS64,
    /* Lists relocations of a thread-local variable.
     * DESCRIPTOR: two words; the second is the variable's offset from the thread pointer, which is
     * positive here, or the address of a module's number and an offset in its block.
     * MODULE: two words, a module's number and such an offset.
     * OFFSET: an offset from the thread pointer. */
    ARCH_RELOCATION_TLS_DESCRIPTOR = R_AARCH64_TLSDESC,
    ARCH_RELOCATION_TLS_MODULE = 1028, /* R_AARCH64_TLS_DTPMOD64 */
    ARCH_RELOCATION_TLS_OFFSET = 1030, /* R_AARCH64_TLS_TPREL64 */
};

/* States the machine's name in uname, and in OpenTelemetry. */
#define ARCH_MACHINE_NAME "aarch64"
#define ARCH_HOST_NAME    "arm64"

/* Calls the resolver of an STT_GNU_IFUNC symbol as the loader does: with the processor's features,
 * and with a list of them that begins with its own size. Returns the function's address. */
static inline void *arch_resolve(const void *resolver) {
    const uint64_t has_list = UINT64_C(1) << 62; /* _IFUNC_ARG_HWCAP */
    const uint64_t features[3] = {sizeof features, getauxval(AT_HWCAP), getauxval(AT_HWCAP2)};
    void *(*resolve)(uint64_t, const uint64_t *);
    memcpy(&resolve, &resolver, sizeof resolve);
    return resolve(features[1] | has_list, features);
}

#endif
