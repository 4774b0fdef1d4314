/* Holds the debug information of a file in memory, as an ELF file that libdw reads.
 *
 * libdw trusts its input: it inflates all that claims to be compressed, opens further files by the
 * names that it finds, and for one unit it reads all units before it, a kilobyte for each. So libdw
 * gets images made by the profiler: they hold only the file's sections with names and lines,
 * inflated by the profiler, within a bound for all sections together. All images are in one
 * mapping, which debug_image_close() removes. An image holds either the whole file or a single unit
 * that needs no other (separate_units.h selects these); for a unit only its parts of the large
 * sections are read. Context: flush.
 */
#ifndef OTELPROF_DEBUG_IMAGE_H
#define OTELPROF_DEBUG_IMAGE_H

#include "elf_sections.h"
#include "section_parts.h"

#include <elfutils/libdw.h>

/* Lists sections that are read in parts: units, their abbreviations, their line programs. */
enum debug_part { DEBUG_INFO, DEBUG_ABBREV, DEBUG_LINE, DEBUG_PARTS };

enum { MAX_UNIT_IMAGES = 256 };

/* Holds libdw's handles of one image. */
struct debug_file {
    Elf *elf;
    Dwarf *dwarf; /* NULL: not open */
    uint64_t at;  /* for a unit: its offset in .debug_info */
};

struct debug_image {
    uint8_t *bytes; /* mmapped; NULL: closed */
    size_t size;
    uint64_t filled;         /* bytes of the mapping that are filled */
    struct debug_room *room; /* beginning of the mapping: the state of parts and units */
    const uint8_t *aranges;  /* contents of .debug_aranges; NULL: none */
    uint64_t aranges_size;
    struct debug_file whole;
    unsigned unit_count;
};

/* Returns the size of the image in bytes; 0: there is no debug information that can be read.
 * `compressed`: set to true if it must be inflated. */
uint64_t debug_image_bytes(const struct elf_sections *sections, bool *compressed);

/* Makes the mapping, after debug_image_bytes() has not returned 0. `sections` must stay open longer
 * than the image. Returns false if a section cannot be read, or there is no memory. */
bool debug_image_open(struct debug_image *image, const struct elf_sections *sections);

/* Returns the image of the whole file, which the first call reads. NULL: the image could not be
 * read. */
Dwarf *debug_image_whole(struct debug_image *image);

/* Opens the image of the unit at [at, at + size) of .debug_info. The unit and its abbreviations
 * must have been read. NULL: the image could not be opened, or there are MAX_UNIT_IMAGES
 * already. */
Dwarf *debug_image_unit(struct debug_image *image, uint64_t at, uint64_t size);

/* Returns the image of the unit at that offset, if it was opened before. NULL: no image was opened
 * there, or opening it failed. */
Dwarf *debug_image_known_unit(const struct debug_image *image, uint64_t at);

/* Returns bytes [at, at + size) of a section, and reads them if necessary. NULL: the section is
 * shorter, or cannot be read. */
const uint8_t *debug_image_need(struct debug_image *image, enum debug_part part, uint64_t at,
                                uint64_t size);

/* Returns the size of the line program at that offset of .debug_line, header included, and reads
 * the program if it has at most `max` bytes. Returns 0 if there is none, or it cannot be read. */
uint64_t debug_image_line_bytes(struct debug_image *image, uint64_t offset, uint64_t max);

void debug_image_close(struct debug_image *image);

#endif
