/* Opens the files that describe one module: its own, and its debug files.
 *
 * The file that is read must be the one that is loaded. trusted_file.h decides which files may be
 * opened at all; then build ids are compared, and a module that has one never takes a file without
 * it. If the file is gone, the kernel still gives access to the running executable's, and of a
 * library the parts in memory are used (loaded_image.h). Debug information is searched where
 * distributions put it: in the file itself, under /usr/lib/debug/.build-id, and by .gnu_debuglink
 * (the build id or else the CRC decides); dwz's common file by .gnu_debugaltlink; a symbol table
 * also in .gnu_debugdata. Nothing is ever fetched from a network.
 *
 * Files are open only while an export's names are looked up. Context: flush.
 */
#ifndef OTELPROF_ELF_FILE_H
#define OTELPROF_ELF_FILE_H

#include "debug_image.h"
#include "elf_sections.h"
#include "harvest.h"

#include <stdbool.h>

/* The file with a symbol's name. */
enum elf_part { PART_MAIN, PART_DEBUG, PART_MINIDEBUG, ELF_PARTS };

struct elf_file {
    struct elf_sections parts[ELF_PARTS]; /* the file, its debug file, unpacked .gnu_debugdata */
    struct elf_sections alternate;        /* dwz's common file of several debug files */
    struct debug_image debug; /* debug.bytes is NULL if there is none, or it is not open */
    struct debug_image alternate_debug;
};

void elf_file_init(struct elf_file *file);

/* Opens the module's own file. false: there is none that can be trusted; `file` is then closed. */
bool elf_file_open(struct elf_file *file, const struct harvest_module *module);

/* Opens the other files that may have the module's symbols. */
void elf_file_open_debug_files(struct elf_file *file, const struct harvest_module *module);

/* Returns the size of the debug information in memory; 0: there is none, or more than is ever read.
 */
uint64_t elf_file_dwarf_bytes(const struct elf_file *file, bool *compressed);

/* Opens the debug information as file->debug. Uses libelf and libdw. false: that failed. */
bool elf_file_open_dwarf(struct elf_file *file);

void elf_file_close(struct elf_file *file);

/* Called after work under the guard was left: the data of that work, and libdw's, is never touched
 * again. Closes descriptors and removes mappings. The first leaves the files open, which libdw does
 * not use. */
void elf_file_abandon_dwarf(struct elf_file *file);
void elf_file_abandon(struct elf_file *file);

#endif
