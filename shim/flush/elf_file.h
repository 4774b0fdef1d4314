/* One ELF file, read for symbols: mapped, never written, no descriptor left open. That of an
 * unloaded library, which may be shortened at any moment, is read into memory.
 *
 * The file that is read must be the one that is loaded: where both build ids are known they are
 * compared. If it is gone, the running executable's is still to be had from the kernel, and of a
 * library what is in memory (loaded_image.h). Debug information is looked for where distributions
 * put it: in the file itself, under /usr/lib/debug/.build-id, and by .gnu_debuglink (whose CRC is
 * checked); a symbol table also in .gnu_debugdata. Nothing is ever fetched from a network. Context:
 * flush.
 */
#ifndef OTELPROF_ELF_FILE_H
#define OTELPROF_ELF_FILE_H

#include "harvest.h"

#include <elfutils/libdw.h>
#include <gelf.h>
#include <stdbool.h>

struct elf_image {
    void *bytes;
    size_t size;
    bool mapped; /* munmap, not free */
    Elf *elf;
};

struct elf_file {
    struct elf_image main;
    struct elf_image debug;     /* separate debug file, elf == NULL: none */
    struct elf_image minidebug; /* unpacked .gnu_debugdata */
    Dwarf *dwarf;               /* of main or debug; NULL: none, or not wanted */
};

/* How much work debug information is worth. */
enum dwarf_effort {
    DWARF_NONE,
    DWARF_CHEAP, /* not if its sections must be inflated first, which takes tens of milliseconds */
    DWARF_ANY,
};

/* Opens the file of `module`. false: there is none that can be trusted; `file` is then empty. */
bool elf_file_open(struct elf_file *file, const struct harvest_module *module,
                   enum dwarf_effort effort);

/* Opens debug information that was left out when the file was opened. */
void elf_file_add_dwarf(struct elf_file *file);

void elf_file_close(struct elf_file *file);

/* The file's own GNU build id; 0: none. Valid while the image is open. */
size_t elf_build_id(Elf *elf, const void **id);

#endif
