#include "function_extent.h"

#include "cfi_reader.h"

#include <string.h>

enum {
    HEAD_BYTES = 12, /* size of .eh_frame_hdr before its pairs */
    /* largest size of an entry up to its instructions; compilers' entries have some twenty bytes */
    ENTRY_BYTES = 64,
};

/* Has the layout of a pair of the sorted table: two offsets from the section's address. */
struct pair {
    int32_t function;
    int32_t entry;
};

struct tables {
    const struct elf_sections *sections;
    const Elf64_Shdr *index;   /* section header of .eh_frame_hdr */
    const Elf64_Shdr *entries; /* section header of .eh_frame */
};

static bool read_pair(const struct tables *tables, uint64_t number, struct pair *pair) {
    return elf_section_read_part(tables->sections, tables->index,
                                 HEAD_BYTES + number * sizeof *pair, pair, sizeof *pair);
}

/* Returns the number of pairs; 0 if the table cannot be read or has a form that no linker writes.
 * Linkers write version 1; a pointer and the count in 4 bytes each; pairs of 4-byte offsets. */
static uint64_t pairs_of(const struct tables *tables) {
    uint8_t head[HEAD_BYTES];
    uint32_t count;
    if (!elf_section_read_part(tables->sections, tables->index, 0, head, sizeof head) ||
        head[0] != 1 || (head[1] & ENCODING_FORMAT) != 0x0b || head[2] != 0x03 ||
        head[3] != (ENCODING_DATAREL | 0x0b))
        return 0;
    memcpy(&count, head + 8, sizeof count);
    const uint64_t room = (tables->index->sh_size - sizeof head) / sizeof(struct pair);
    return count < room ? count : room;
}

/* Finds the last pair whose function begins at `address` or before. */
static bool find_pair(const struct tables *tables, uint64_t address, struct pair *found) {
    const int64_t wanted = (int64_t)(address - tables->index->sh_addr);
    uint64_t low = 0;
    for (uint64_t high = pairs_of(tables); low < high;) {
        const uint64_t middle = low + (high - low) / 2;
        struct pair pair;
        if (!read_pair(tables, middle, &pair))
            return false;
        if (pair.function <= wanted)
            low = middle + 1;
        else
            high = middle;
    }
    return low > 0 && read_pair(tables, low - 1, found);
}

/* Opens the entry at `at` of .eh_frame, behind its length, up to the size of `bytes`. */
static struct reader open_entry(const struct tables *tables, uint64_t at,
                                uint8_t bytes[ENTRY_BYTES]) {
    const uint64_t left = at < tables->entries->sh_size ? tables->entries->sh_size - at : 0;
    const size_t size = left < ENTRY_BYTES ? left : ENTRY_BYTES;
    struct reader r = {(uintptr_t)bytes, (uintptr_t)bytes + size, false};
    r.failed = !elf_section_read_part(tables->sections, tables->entries, at, bytes, size);
    /* treats longer lengths as unreadable, because no linker writes them */
    const uint64_t length = read_unsigned(&r, 4);
    if (length < (uint64_t)(r.end - r.at))
        r.end = r.at + length;
    r.failed |= length == 0 || length >= 0xfffffff0;
    return r;
}

/* Returns the encoding of pointers in entries of the common entry (CIE) at `at`; ENCODING_OMIT: it
 * cannot be read. */
static unsigned encoding_of(const struct tables *tables, uint64_t at) {
    uint8_t bytes[ENTRY_BYTES];
    char letters[8] = "";
    unsigned encoding = 0;
    struct reader r = open_entry(tables, at, bytes);
    const uint64_t id = read_unsigned(&r, 4);
    const uint64_t version = read_unsigned(&r, 1);
    for (size_t i = 0; i < sizeof letters && (letters[i] = (char)read_unsigned(&r, 1)); i++)
        ;
    /* skips the unit of code, the unit of data, and the return address's register */
    (void)read_uleb(&r);
    (void)read_sleb(&r);
    (void)(version == 1 ? read_unsigned(&r, 1) : read_uleb(&r));
    if (r.failed || id != 0 || letters[sizeof letters - 1])
        return ENCODING_OMIT;
    if (letters[0] != 'z')
        return letters[0] ? ENCODING_OMIT : 0;
    (void)read_uleb(&r); /* skips the size of the augmentation data */
    for (const char *letter = letters + 1; *letter && *letter != 'R'; letter++) {
        if (*letter == 'P')
            (void)read_pointer(&r, (unsigned)read_unsigned(&r, 1), 0);
        else if (*letter == 'L')
            (void)read_unsigned(&r, 1);
        else if (*letter != 'S' && *letter != 'B')
            return ENCODING_OMIT;
    }
    if (strchr(letters, 'R'))
        encoding = (unsigned)read_unsigned(&r, 1);
    return r.failed ? ENCODING_OMIT : encoding;
}

/* Returns the number of bytes of the function that the entry at `at` describes; 0: it cannot be
 * read. */
static uint64_t length_of(const struct tables *tables, uint64_t at) {
    uint8_t bytes[ENTRY_BYTES];
    struct reader r = open_entry(tables, at, bytes);
    const uint64_t back = read_unsigned(&r, 4); /* distance from this field to the common entry */
    const unsigned encoding =
        r.failed || back == 0 || back > at + 4 ? ENCODING_OMIT : encoding_of(tables, at + 4 - back);
    if (encoding == ENCODING_OMIT)
        return 0;
    /* skips the function's beginning, which is known from the pair */
    (void)read_format(&r, encoding & ENCODING_FORMAT);
    const uint64_t length = read_format(&r, encoding & ENCODING_FORMAT);
    return r.failed ? 0 : length;
}

bool function_extent(const struct elf_sections *sections, uint64_t address, uint64_t *start,
                     uint64_t *end) {
    const struct tables tables = {sections, elf_section_named(sections, ".eh_frame_hdr"),
                                  elf_section_named(sections, ".eh_frame")};
    struct pair pair;
    if (!tables.index || !tables.entries || !find_pair(&tables, address, &pair))
        return false;
    const uint64_t base = tables.index->sh_addr;
    const uint64_t at = base + (uint64_t)(int64_t)pair.entry - tables.entries->sh_addr;
    const uint64_t length = length_of(&tables, at);
    *start = base + (uint64_t)(int64_t)pair.function;
    *end = *start + length;
    return address - *start<length && * end> * start;
}
