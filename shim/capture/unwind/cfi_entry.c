#include "cfi_entry.h"

#include <string.h>

/* Describes the sorted table of .eh_frame_hdr: pairs of offsets from the header, of a function's
 * start and of its entry. */
struct search_table {
    const char *pairs; /* not aligned, except by convention */
    uint64_t count;
    uint64_t beyond; /* index of the first pair that starts beyond the pc */
};

enum column { FUNCTION, ENTRY };

static int32_t offset_in(const struct search_table *table, uint64_t index, enum column column) {
    int32_t offset;
    memcpy(&offset, table->pairs + 8 * index + 4 * column, sizeof offset);
    return offset;
}

/* Returns a reader that ends with the segment of `place`. */
static struct reader reader_at(const struct cfi_tables *tables, uintptr_t place) {
    const struct readable_range range = cfi_readable_around(tables, place);
    return (struct reader){place, range.end, place < range.start};
}

/* Searches the table for the first function that starts beyond `pc`. Returns false if the header
 * cannot be read, or does not have the form that every linker writes: version 1, a count that is
 * not 0, and a sorted table of pairs of 4-byte offsets from the header. */
static bool cfi_search_table(const struct cfi_tables *tables, uintptr_t pc,
                             struct search_table *table) {
    struct reader r = reader_at(tables, tables->header);
    const uint64_t version = read_unsigned(&r, 1);
    const unsigned frame_encoding = (unsigned)read_unsigned(&r, 1);
    const unsigned count_encoding = (unsigned)read_unsigned(&r, 1);
    const unsigned table_encoding = (unsigned)read_unsigned(&r, 1);
    (void)read_pointer(&r, frame_encoding, tables->header);
    table->count = read_pointer(&r, count_encoding, tables->header);
    if (r.failed || version != 1 || table_encoding != (ENCODING_DATAREL | 0x0b))
        return false;
    if (table->count == 0 || table->count > (r.end - r.at) / 8)
        return false;

    table->pairs = (const char *)r.at;
    const int64_t wanted = (int64_t)(pc - tables->header);
    uint64_t low = 0;
    uint64_t high = table->count;
    while (low < high) { /* at most 64 rounds */
        const uint64_t middle = low + (high - low) / 2;
        if (offset_in(table, middle, FUNCTION) <= wanted)
            low = middle + 1;
        else
            high = middle;
    }
    table->beyond = low;
    return true;
}

static uintptr_t at_offset(const struct cfi_tables *tables, int32_t offset) {
    return tables->header + (uintptr_t)(intptr_t)offset;
}

/* Returns a reader of the bytes after the length of the entry at `place`. The reader has failed if
 * the entry ends the section, or cannot be read. */
static struct reader cfi_entry_open_entry(const struct cfi_tables *tables, uintptr_t place) {
    struct reader r = reader_at(tables, place);
    uint64_t length = read_unsigned(&r, 4);
    if (length == 0xffffffff)
        length = read_unsigned(&r, 8);
    if (length == 0 || !reader_has(&r, length)) {
        r.failed = true;
        return r;
    }
    r.end = r.at + length;
    return r;
}

static void parse_augmentation(struct cie *cie, struct reader *r, const char *letters) {
    if (*letters != 'z') {
        r->failed |= *letters != 0;
        return;
    }
    cie->has_augmentation_data = true;
    const uint64_t size = read_uleb(r);
    const uintptr_t end = r->at + size;
    for (letters++; *letters && !r->failed; letters++) {
        if (*letters == 'R')
            cie->pointer_encoding = (uint8_t)read_unsigned(r, 1);
        else if (*letters == 'P')
            (void)read_pointer(r, (unsigned)read_unsigned(r, 1), 0);
        else if (*letters == 'L')
            (void)read_unsigned(r, 1);
        else if (*letters == 'S')
            cie->signal_frame = true;
        else if (*letters != 'B')
            break; /* data of unknown letters is skipped by its size */
    }
    if (end < r->at || end > r->end)
        r->failed = true;
    r->at = end;
}

static bool parse_cie(const struct cfi_tables *tables, uintptr_t place, struct cie *cie) {
    struct reader r = cfi_entry_open_entry(tables, place);
    const uint64_t id = read_unsigned(&r, 4);
    const uint64_t version = read_unsigned(&r, 1);
    if (r.failed || id != 0 || (version != 1 && version != 3))
        return false;

    const char *const letters = (const char *)r.at;
    while (read_unsigned(&r, 1) != 0 && !r.failed)
        ;
    *cie = (struct cie){.code_align = read_uleb(&r)};
    cie->data_align = read_sleb(&r);
    cie->return_register = version == 1 ? read_unsigned(&r, 1) : read_uleb(&r);
    if (r.failed)
        return false;
    parse_augmentation(cie, &r, letters);
    cie->instructions = r;
    return !r.failed;
}

bool cfi_entry_at(const struct cfi_tables *tables, uintptr_t place, struct fde *fde) {
    struct reader r = cfi_entry_open_entry(tables, place);
    const uintptr_t id_place = r.at;
    const uint64_t id = read_unsigned(&r, 4);
    if (r.failed || id == 0 || !parse_cie(tables, id_place - id, &fde->cie))
        return false;
    fde->pc_start = read_pointer(&r, fde->cie.pointer_encoding, tables->header);
    fde->pc_end = fde->pc_start + read_format(&r, fde->cie.pointer_encoding & ENCODING_FORMAT);
    if (fde->cie.has_augmentation_data)
        skip(&r, read_uleb(&r));
    fde->instructions = r;
    return !r.failed;
}

bool cfi_entry_before(const struct cfi_tables *tables, uintptr_t pc, struct fde *fde) {
    struct search_table table;
    if (!cfi_search_table(tables, pc, &table) || table.beyond == 0)
        return false;
    const uintptr_t place = at_offset(tables, offset_in(&table, table.beyond - 1, ENTRY));
    return place && cfi_entry_at(tables, place, fde);
}

/* --- between functions --- */

bool cfi_is_start(const struct cfi_tables *tables, uintptr_t pc) {
    struct search_table table;
    return cfi_search_table(tables, pc, &table) && table.beyond > 0 &&
           at_offset(tables, offset_in(&table, table.beyond - 1, FUNCTION)) == pc;
}

bool cfi_is_gap(const struct cfi_tables *tables, uintptr_t pc, uintptr_t bytes) {
    struct search_table table;
    struct fde before;
    uintptr_t start = tables->start;
    uintptr_t end = tables->end;
    if (!cfi_search_table(tables, pc, &table))
        return false;
    if (table.beyond < table.count)
        end = at_offset(tables, offset_in(&table, table.beyond, FUNCTION));
    if (table.beyond > 0) {
        const uintptr_t place = at_offset(tables, offset_in(&table, table.beyond - 1, ENTRY));
        if (!cfi_entry_at(tables, place, &before))
            return false;
        start = before.pc_end;
    }
    return pc >= start && pc < end && end - start >= bytes;
}
