/* Reads parts of a section, in any order, each to its place in a mapping that has room for all of
 * it: parts that are never read take no memory.
 *
 * A compressed section can be read from its beginning only. So zlib's state is kept at some points,
 * and reading continues from the last one before a part. zstd's state cannot be copied: a section
 * packed by it is read whole. A caller that reads too many parts gets
 * the rest at once, which bounds the bytes inflated to a few times the section. A part that is
 * there is not written again, even if the file has changed. Context: flush.
 */
#ifndef OTELPROF_SECTION_PARTS_H
#define OTELPROF_SECTION_PARTS_H

#include "elf_sections.h"

#include <zlib.h>

enum { MAX_INFLATE_STATES = 24 };

/* Zeroed: closed. */
struct section_parts {
    const struct elf_sections *sections;
    const Elf64_Shdr *header;
    uint8_t *to;
    uint64_t size;
    struct section_form form;
    uint8_t *present; /* a bit for each part; malloc'ed */
    z_stream stream;  /* of a compressed section: at its present position */
    z_stream states[MAX_INFLATE_STATES];
    unsigned kept;     /* of the states; the first is that of the beginning */
    uint64_t inflated; /* bytes, parts that were not requested among them */
    bool failed;
};

/* `to` has room for `size` bytes, elf_section_size(), and is zeroed; nothing is read yet. false: no
 * memory. */
bool section_parts_open(struct section_parts *parts, const struct elf_sections *sections,
                        const Elf64_Shdr *header, uint8_t *to, uint64_t size);

/* Reads [at, at + size). false: that is not within the section, or cannot be read. */
bool section_parts_need(struct section_parts *parts, uint64_t at, uint64_t size);

/* Leaves `to` as it is. */
void section_parts_close(struct section_parts *parts);

#endif
