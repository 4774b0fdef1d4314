/* Makes the ELF header of a file in memory, for libraries that read files: it has sections and no
 * segments. Context: any. */
#ifndef OTELPROF_IMAGE_HEADER_H
#define OTELPROF_IMAGE_HEADER_H

#include "arch_object.h"

#include <elf.h>
#include <stdint.h>

/* Makes a header. `sections_at`: the offset of the `count` section headers. `names`: the number of
 * the section with their names, SHN_UNDEF if they have none. */
static inline Elf64_Ehdr image_header(uint64_t sections_at, uint16_t count, uint16_t names) {
    return (Elf64_Ehdr){
        .e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
        .e_type = ET_DYN,
        .e_machine = ARCH_ELF_MACHINE,
        .e_version = EV_CURRENT,
        .e_ehsize = sizeof(Elf64_Ehdr),
        .e_shoff = sections_at,
        .e_shentsize = sizeof(Elf64_Shdr),
        .e_shnum = count,
        .e_shstrndx = names};
}

#endif
