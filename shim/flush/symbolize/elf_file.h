/* Opens the files that describe one module: its own, and its debug files.
 *
 * The file that is read must be the one that is loaded. trusted_file.h decides which files may be
 * opened; then build ids are compared: for a module with a build id no file without it is used. If
 * a file was deleted, the kernel still gives access to the file of the running executable; for a
 * library the parts in memory are used (loaded_image.h). Debug information is searched where
 * distributions put it: in the file itself, under /usr/lib/debug/.build-id, and by .gnu_debuglink
 * (the build id or else the CRC decides); dwz's common file by .gnu_debugaltlink; a symbol table
 * also in .gnu_debugdata. No file is ever fetched from a network.
 *
 * Files are open only while an export's names are looked up. Context: flush.
 */
#ifndef OTELPROF_ELF_FILE_H
#define OTELPROF_ELF_FILE_H

#include "debug_image.h"
#include "elf_sections.h"
#include "harvest.h"

#include <stdbool.h>

/* Lists the files that may have a symbol's name. */
enum elf_part { PART_MAIN, PART_DEBUG, PART_MINIDEBUG, ELF_PARTS };

struct elf_file {
    struct elf_sections parts[ELF_PARTS]; /* the file, its debug file, unpacked .gnu_debugdata */
    struct elf_sections alternate;        /* dwz's common file of several debug files */
    /* debug.bytes is NULL if there is no debug information, or if it is not open */
    struct debug_image debug;
    struct debug_image alternate_debug;
};

void elf_file_init(struct elf_file *file);

/* Opens the module's own file, or makes a file from its loaded parts. Returns false if there is
 * none that can be trusted; then `file` is closed. */
bool elf_file_open(struct elf_file *file, const struct harvest_module *module);

/* Opens the other files that may have the module's symbols. */
void elf_file_open_debug_files(struct elf_file *file, const struct harvest_module *module);

/* Returns the size of the debug information in memory; 0: there is none, or more than the limit.
 */
uint64_t elf_file_dwarf_bytes(const struct elf_file *file, bool *compressed);

/* Opens the debug information as file->debug. Uses libelf and libdw. Returns false if it cannot be
 * opened. */
bool elf_file_open_dwarf(struct elf_file *file);

void elf_file_close(struct elf_file *file);

/* Call these after work under the guard was abandoned: its data, and libdw's, must never be touched
 * or freed again. elf_file_abandon_dwarf() removes the mappings of debug information.
 * elf_file_abandon() also closes the files. */
void elf_file_abandon_dwarf(struct elf_file *file);
void elf_file_abandon(struct elf_file *file);

#endif
