#include "foreign_code.h"

#include "object_segments.h"

#include <elfutils/libdw.h>
#include <link.h>
#include <lzma.h>
#include <stdbool.h>
#include <yaml.h>
#include <zlib.h>
#include <zstd.h>

/* Returns true for a library that has one of the wanted functions. */
static bool foreign_code_is_wanted(const struct dl_phdr_info *info) {
    const uintptr_t functions[] = {
        (uintptr_t)(void *)foreign_code_find, (uintptr_t)(void *)elf_begin,
        (uintptr_t)(void *)dwarf_begin_elf,   (uintptr_t)(void *)inflate,
        (uintptr_t)(void *)lzma_code,         (uintptr_t)(void *)ZSTD_decompress,
        (uintptr_t)(void *)yaml_parser_load};
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        if (object_spans(info, functions[i]))
            return true;
    return false;
}

static int foreign_code_add_object(struct dl_phdr_info *info, size_t size, void *arg) {
    struct foreign_code *const code = arg;
    (void)size;
    if (!foreign_code_is_wanted(info))
        return 0;
    for (int i = 0; i < info->dlpi_phnum && code->count < MAX_FOREIGN_CODE; i++) {
        const ElfW(Phdr) *const header = &info->dlpi_phdr[i];
        const uint64_t start = info->dlpi_addr + header->p_vaddr;
        if (header->p_type == PT_LOAD && header->p_flags & PF_X)
            code->ranges[code->count++] = (struct code_range){start, start + header->p_memsz};
    }
    return 0;
}

void foreign_code_find(struct foreign_code *code) {
    code->count = 0;
    dl_iterate_phdr(foreign_code_add_object, code);
}
