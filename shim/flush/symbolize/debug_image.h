/* The debug information of a file, in memory, as an ELF file that libdw reads.
 *
 * libdw takes what it is given: it inflates whatever claims to be compressed, and opens further
 * files by the names that it finds. So it is given an image of ours: of the file's sections those
 * that names and lines are in, inflated by us, within a bound on all together. The image is one
 * mapping of its own, which is gone when it is closed. Context: flush.
 */
#ifndef OTELPROF_DEBUG_IMAGE_H
#define OTELPROF_DEBUG_IMAGE_H

#include "elf_sections.h"

#include <elfutils/libdw.h>

struct debug_image {
    uint8_t *bytes; /* mmapped; NULL: closed */
    size_t size;
    uint64_t line_at; /* where .debug_line begins in it */
    uint64_t line_size;
    Elf *elf;
    Dwarf *dwarf;
};

/* What the image would take, in bytes; 0: there is no debug information, or none that can be read.
 * `compressed`: it must be inflated first. */
uint64_t debug_image_bytes(const struct elf_sections *sections, bool *compressed);

/* Makes the image; debug_image_bytes() was not 0. false: it could not be read, or no memory. */
bool debug_image_open(struct debug_image *image, const struct elf_sections *sections);

/* The bytes of the line program at that offset of .debug_line, its header included; 0: there is
 * none. */
uint64_t debug_image_line_bytes(const struct debug_image *image, uint64_t offset);

void debug_image_close(struct debug_image *image);

#endif
