/* The files that describe one module: its own, and the debug files beside it.
 *
 * The file that is read must be the one that is loaded. Which files may be opened at all says
 * trusted_file.h; then build ids are compared, and a module that has one never takes a file without
 * it. If the file is gone, the running executable's is still to be had from the kernel, and of a
 * library what is in memory (loaded_image.h). Debug information is looked for where distributions
 * put it: in the file itself, under /usr/lib/debug/.build-id, and by .gnu_debuglink (the build id
 * or else the CRC decides); what dwz moved into a common file, by .gnu_debugaltlink; a symbol table
 * also in .gnu_debugdata. Nothing is ever fetched from a network.
 *
 * Files are open while an export's names are looked up, and at no other time. Context: flush.
 */
#ifndef OTELPROF_ELF_FILE_H
#define OTELPROF_ELF_FILE_H

#include "debug_image.h"
#include "elf_sections.h"
#include "harvest.h"

#include <stdbool.h>

/* Where a symbol's name is. */
enum elf_part { PART_MAIN, PART_DEBUG, PART_MINIDEBUG, ELF_PARTS };

struct elf_file {
    struct elf_sections parts[ELF_PARTS]; /* the file, its debug file, unpacked .gnu_debugdata */
    struct elf_sections alternate;        /* what dwz made common to several debug files */
    struct debug_image debug;             /* debug.bytes: NULL, none or not opened */
    struct debug_image alternate_debug;
};

void elf_file_init(struct elf_file *file);

/* Opens the module's own file. false: there is none that can be trusted; `file` is then closed. */
bool elf_file_open(struct elf_file *file, const struct harvest_module *module);

/* Opens what other files there are, for names. */
void elf_file_open_debug_files(struct elf_file *file, const struct harvest_module *module);

/* What the debug information takes in memory; 0: there is none, or more than is ever read. */
uint64_t elf_file_dwarf_bytes(const struct elf_file *file, bool *compressed);

/* Opens the debug information as file->debug. Uses libelf and libdw. false: that failed. */
bool elf_file_open_dwarf(struct elf_file *file);

void elf_file_close(struct elf_file *file);

/* Work under the guard was left: what it had made, and libdw's, is never touched again. Descriptors
 * are closed, mappings given back. The first leaves the files open, of which libdw knows nothing.
 */
void elf_file_abandon_dwarf(struct elf_file *file);
void elf_file_abandon(struct elf_file *file);

#endif
