#include "registered_section.h"

#include "arch_memory.h"
#include "stack_memory.h"

/* Returns true if all bytes up to `end` can be read. */
static bool read_up_to(struct cfi_tables *tables, uintptr_t end) {
    while (tables->end < end) { /* bounded by the largest entry */
        if (!memory_is_readable(tables->end))
            return false;
        tables->end += ARCH_SMALLEST_PAGE_BYTES;
    }
    return true;
}

struct registered_section registered_section_at(uintptr_t begin, uintptr_t data_base) {
    const uintptr_t page = begin & -(uintptr_t)ARCH_SMALLEST_PAGE_BYTES;
    return (struct registered_section){
        .at = begin, .tables = {.header = data_base, .start = begin, .end = page}};
}

/* Describes an entry: the bytes behind its length. */
struct entry {
    uintptr_t id; /* address of the CIE's or the FDE's first field */
    uintptr_t end;
};

static bool registered_section_open_entry(struct registered_section *section, struct entry *entry) {
    const uintptr_t at = section->at;
    if (at > UINTPTR_MAX - REGISTERED_SECTION_BYTES - REGISTERED_ENTRY_BYTES ||
        !read_up_to(&section->tables, at + 4))
        return false;
    struct reader r = {at, section->tables.end, false};
    uint64_t length = read_unsigned(&r, 4);
    if (length == 0xffffffff) {
        if (!read_up_to(&section->tables, at + 12))
            return false;
        r.end = section->tables.end;
        length = read_unsigned(&r, 8);
    }
    if (length < 4 || length > REGISTERED_ENTRY_BYTES)
        return false;
    *entry = (struct entry){r.at, r.at + length};
    return read_up_to(&section->tables, entry->end);
}

/* Extends the readable range to the common information at `place` of an entry that was registered
 * alone; the common information precedes the entry. Returns false if it cannot be read. */
static bool include_common(struct registered_section *section, uintptr_t place) {
    const uintptr_t page = place & -(uintptr_t)ARCH_SMALLEST_PAGE_BYTES;
    struct cfi_tables before = {.start = place, .end = page};
    if (section->tables.start - place > REGISTERED_SECTION_BYTES ||
        !read_up_to(&before, section->tables.start))
        return false;
    section->tables.start = place;
    return true;
}

static bool describes_code(const struct fde *fde) {
    return fde->pc_start >= LOWEST_MAPPED && fde->pc_end > fde->pc_start &&
           fde->pc_end - fde->pc_start <= UINT32_MAX &&
           !(fde->cie.pointer_encoding & ENCODING_INDIRECT);
}

/* Reads one entry. Returns false if the entry describes no code, or cannot be read. */
static bool take_entry(struct registered_section *section, const struct entry *entry,
                       struct fde *fde) {
    const uintptr_t at = section->at;
    struct reader r = {entry->id, section->tables.end, false};
    const uint64_t id = read_unsigned(&r, 4);
    section->is_entry |= id != 0 && at == section->tables.start;
    section->at = entry->end - section->tables.start > REGISTERED_SECTION_BYTES ? 0 : entry->end;
    if (id == 0)
        return false;
    if (section->is_entry) {
        section->at = 0;
        if (id > entry->id || !include_common(section, entry->id - id))
            return false;
    }
    return cfi_entry_at(&section->tables, at, fde) && describes_code(fde);
}

bool registered_section_next(struct registered_section *section, struct fde *fde) {
    struct entry entry;
    while (section->at) { /* bounded: each round advances, within REGISTERED_SECTION_BYTES */
        if (!registered_section_open_entry(section, &entry))
            section->at = 0;
        else if (take_entry(section, &entry, fde))
            return true;
    }
    return false;
}
