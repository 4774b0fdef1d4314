/* Holds the debug information of a file in memory, as an ELF file that libdw reads.
 *
 * libdw trusts its input: it inflates whatever claims to be compressed, opens further files by the
 * names that it finds, and for one unit it reads all units before it, a kilobyte for each. So it
 * gets images made by the profiler: they hold only the file's sections with names and lines,
 * inflated by the profiler, within a bound on all together. All lie in one mapping, which closing
 * removes. An image may hold one unit, as if there were no other (separate_units.h selects such
 * units); then only the parts of the large sections that belong to the unit are read. Or it holds
 * the whole file. Context: flush.
 */
#ifndef OTELPROF_DEBUG_IMAGE_H
#define OTELPROF_DEBUG_IMAGE_H

#include "elf_sections.h"
#include "section_parts.h"

#include <elfutils/libdw.h>

/* Sections that are read in parts: units, their abbreviations, their line programs. */
enum debug_part { DEBUG_INFO, DEBUG_ABBREV, DEBUG_LINE, DEBUG_PARTS };

enum { MAX_UNIT_IMAGES = 256 };

/* libdw's handles of one image. */
struct debug_file {
    Elf *elf;
    Dwarf *dwarf; /* NULL: none */
    uint64_t at;  /* of a unit: in .debug_info */
};

struct debug_image {
    uint8_t *bytes; /* mmapped; NULL: closed */
    size_t size;
    uint64_t filled;         /* of it */
    struct debug_room *room; /* its beginning: the state of parts and units */
    const uint8_t *aranges;  /* .debug_aranges; NULL: none */
    uint64_t aranges_size;
    struct debug_file whole;
    unsigned unit_count;
};

/* Returns the size of the image in bytes; 0: there is no debug information, or none that can be
 * read. `compressed`: it must be inflated first. */
uint64_t debug_image_bytes(const struct elf_sections *sections, bool *compressed);

/* Makes the mapping; debug_image_bytes() was not 0. `sections` must stay open longer than the
 * image. false: they could not be read, or no memory. */
bool debug_image_open(struct debug_image *image, const struct elf_sections *sections);

/* Reads all of it, the first time. NULL: that failed. */
Dwarf *debug_image_whole(struct debug_image *image);

/* Opens the image of the one unit at [at, at + size) of .debug_info, which has been read, as have
 * its abbreviations. NULL: that failed, or there are MAX_UNIT_IMAGES already. */
Dwarf *debug_image_unit(struct debug_image *image, uint64_t at, uint64_t size);

/* Returns such an image if it was made before. NULL: it was not, or that failed. */
Dwarf *debug_image_known_unit(const struct debug_image *image, uint64_t at);

/* Returns bytes [at, at + size) of a section, and reads them if necessary. NULL: there are none, or
 * they cannot be read. */
const uint8_t *debug_image_need(struct debug_image *image, enum debug_part part, uint64_t at,
                                uint64_t size);

/* Returns the size of the line program at that offset of .debug_line, with its header, and reads it
 * if that is at most `max` bytes; 0: there is none. */
uint64_t debug_image_line_bytes(struct debug_image *image, uint64_t offset, uint64_t max);

void debug_image_close(struct debug_image *image);

#endif
