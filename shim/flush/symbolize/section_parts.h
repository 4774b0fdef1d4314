/* Reads parts of a section, in any order, each to its place in a mapping that has room for the
 * whole section: parts that are never read take no memory.
 *
 * A compressed section can be read from its beginning only. So the reader keeps zlib's state at
 * some points, and continues from the last kept state before a part. zstd's state cannot be copied:
 * a section packed by zstd is read whole. If a caller reads too many parts, the rest is read at
 * once: so at most a few times the section's size is inflated. A part that was read is not read
 * again, even if the file has changed. Context: flush.
 */
#ifndef OTELPROF_SECTION_PARTS_H
#define OTELPROF_SECTION_PARTS_H

#include "elf_sections.h"

#include <zlib.h>

enum { MAX_INFLATE_STATES = 24 };

/* Holds the state. Initially zero: closed. */
struct section_parts {
    const struct elf_sections *sections;
    const Elf64_Shdr *header;
    uint8_t *to;
    uint64_t size;
    struct section_form form;
    uint8_t *present; /* one bit for each part that was read; malloc'ed */
    z_stream stream;  /* for a compressed section: zlib's state at the present position */
    z_stream states[MAX_INFLATE_STATES];
    unsigned kept; /* number of kept states; the first is the state at the beginning */
    /* number of inflated bytes, including those of parts that were not requested */
    uint64_t inflated;
    bool failed;
};

/* Opens the section. `to` has room for `size` bytes, elf_section_size(), and is zeroed. Reads no
 * part yet. Returns false if there is no memory. */
bool section_parts_open(struct section_parts *parts, const struct elf_sections *sections,
                        const Elf64_Shdr *header, uint8_t *to, uint64_t size);

/* Reads [at, at + size). Returns false if this range is not within the section, or cannot be
 * read. */
bool section_parts_need(struct section_parts *parts, uint64_t at, uint64_t size);

/* Frees the state; the contents of `to` stay. */
void section_parts_close(struct section_parts *parts);

#endif
