/* Defines the constants of this architecture in ELF files, and its names.
 *
 * Sources: System V psABI for AMD64, 4.1 and table 4.9; "Thread-Local Storage Descriptors for IA32
 * and AMD64/EM64T"; OpenTelemetry's attribute host.arch.
 */
#ifndef OTELPROF_ARCH_OBJECT_H
#define OTELPROF_ARCH_OBJECT_H

#include <elf.h>
#include <string.h>

enum {
    ARCH_ELF_MACHINE = EM_X86_64,
    /* Lists relocations that put a function's address into an object: into its PLT, its GOT, a
     * variable. The first two store the address without an addend. */
    ARCH_RELOCATION_PLT = R_X86_64_JUMP_SLOT,
    ARCH_RELOCATION_GOT = R_X86_64_GLOB_DAT,
    ARCH_RELOCATION_DATA = R_X86_64_64,
    /* Lists relocations of a thread-local variable.
     * DESCRIPTOR: two words; the second is the variable's offset from the thread pointer, which is
     * negative here, or the address of a module's number and an offset in its block.
     * MODULE: two words, a module's number and such an offset.
     * OFFSET: an offset from the thread pointer. */
    ARCH_RELOCATION_TLS_DESCRIPTOR = 36, /* R_X86_64_TLSDESC; older headers lack it */
    ARCH_RELOCATION_TLS_MODULE = R_X86_64_DTPMOD64,
    ARCH_RELOCATION_TLS_OFFSET = R_X86_64_TPOFF64,
};

/* States the machine's name in uname, and in OpenTelemetry. */
#define ARCH_MACHINE_NAME "x86_64"
#define ARCH_HOST_NAME    "amd64"

/* Calls the resolver of an STT_GNU_IFUNC symbol as the loader does: without arguments. Returns the
 * function's address. */
static inline void *arch_resolve(const void *resolver) {
    void *(*resolve)(void);
    memcpy(&resolve, &resolver, sizeof resolve);
    return resolve();
}

#endif
