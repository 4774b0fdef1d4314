#include "separate_units.h"

#include <dwarf.h>
#include <string.h>

enum {
    MAX_RANGES = 1 << 18,    /* largest number of ranges of a file; libc's has six thousand */
    MAX_TABLE = 1 << 20,     /* largest table of abbreviations of a unit, in bytes */
    MAX_UNIT = 16 << 20,     /* largest unit, in bytes; the kernel's largest has 4 MB */
    LONG_FORMAT = 0xfffffff0 /* DWARF 5, 7.4: lengths from this value on are escapes */
};

/* --- .debug_aranges: DWARF 5, 6.1.2 --- */

struct set_header {
    uint32_t length; /* number of bytes that follow */
    uint16_t version;
    uint32_t unit;
    uint8_t address_size;
    uint8_t segment_size;
    uint32_t padding; /* bytes up to a multiple of the size of a pair */
} __attribute__((packed));

struct pair {
    uint64_t address;
    uint64_t length;
};

static void read_pairs(struct address_ranges *ranges, const uint8_t *at, const uint8_t *end,
                       uint64_t unit) {
    struct pair pair;
    for (; (size_t)(end - at) >= sizeof pair && ranges->count < MAX_RANGES; at += sizeof pair) {
        memcpy(&pair, at, sizeof pair);
        if (!pair.address && !pair.length)
            return;
        address_ranges_add(ranges, pair.address, pair.address + pair.length, unit);
    }
}

void separate_units_ranges(const struct debug_image *image, struct address_ranges *ranges) {
    const uint8_t *at = image->aranges;
    struct set_header set;
    if (!at)
        return;
    const uint8_t *const end = at + image->aranges_size;
    while ((size_t)(end - at) >= sizeof set) {
        memcpy(&set, at, sizeof set);
        const size_t bytes = sizeof set.length + (size_t)set.length;
        if (set.length >= LONG_FORMAT || bytes < sizeof set || bytes > (size_t)(end - at))
            break;
        if (set.version == 2 && set.address_size == sizeof(uint64_t) && !set.segment_size)
            read_pairs(ranges, at + sizeof set, at + bytes, set.unit);
        at += bytes;
    }
    address_ranges_sort(ranges);
}

/* --- abbreviations: DWARF 5, 7.5.3 --- */

struct table {
    struct debug_image *image;
    uint64_t at;
    unsigned left; /* number of bytes that the table may still read */
    bool failed;
};

static uint8_t next_byte(struct table *table) {
    const uint8_t *const byte =
        table->left ? debug_image_need(table->image, DEBUG_ABBREV, table->at, 1) : NULL;
    table->failed |= !byte;
    table->left -= table->left > 0;
    table->at++;
    return byte ? *byte : 0;
}

/* Reads a LEB128 number, signed or not; drops its bits beyond 64. At the end of the readable part
 * the table fails, and missing bytes count as 0. */
static uint64_t next_number(struct table *table) {
    uint64_t number = 0;
    uint8_t byte;
    unsigned shift = 0;
    do {
        byte = next_byte(table);
        if (shift < 64)
            number |= (uint64_t)(byte & 0x7f) << shift;
        shift += 7;
    } while (byte & 0x80);
    return number;
}

/* Returns true for forms whose values are in the unit itself, or lead to another place in it, or
 * into a section that all units share. */
static bool stays_inside(uint64_t form) {
    return form >= DW_FORM_addr && form <= DW_FORM_addrx4 && form != DW_FORM_ref_addr &&
           form != DW_FORM_indirect && form != DW_FORM_ref_sup4 && form != DW_FORM_strp_sup &&
           form != DW_FORM_ref_sig8 && form != DW_FORM_ref_sup8;
}

/* Reads the next attribute. Returns false at the end, or if its form is unknown or leads out of the
 * unit. */
static bool next_attribute(struct table *table) {
    const uint64_t name = next_number(table);
    const uint64_t form = next_number(table);
    if (form == DW_FORM_implicit_const)
        (void)next_number(table);
    if (!name && !form)
        return false;
    table->failed |= !stays_inside(form);
    return !table->failed;
}

/* Returns true if the table of abbreviations at that offset shows that its unit is independent. */
static bool is_independent(struct debug_image *image, uint64_t at) {
    struct table table = {.image = image, .at = at, .left = MAX_TABLE};
    while (!table.failed && next_number(&table) != 0) {
        (void)next_number(&table); /* skips the tag */
        (void)next_byte(&table);   /* skips the flag for entries below this one */
        while (next_attribute(&table))
            ;
    }
    return !table.failed;
}

/* --- units: DWARF 5, 7.5.1 --- */

struct unit_header {
    uint32_t length; /* number of bytes that follow */
    uint16_t version;
    union {
        struct {
            uint32_t abbreviations;
            uint8_t address_size;
        } __attribute__((packed)) before_5;
        struct {
            uint8_t type;
            uint8_t address_size;
            uint32_t abbreviations;
        } __attribute__((packed)) since_5;
    };
} __attribute__((packed));

static Dwarf *open_unit(struct debug_image *image, uint64_t at) {
    struct unit_header header;
    const uint8_t *const bytes = debug_image_need(image, DEBUG_INFO, at, sizeof header);
    if (!bytes)
        return NULL;
    memcpy(&header, bytes, sizeof header);
    const uint64_t size = sizeof header.length + (uint64_t)header.length;
    const bool is_new = header.version >= 5;
    const uint64_t table = is_new ? header.since_5.abbreviations : header.before_5.abbreviations;
    if (header.length >= LONG_FORMAT || size > MAX_UNIT ||
        (is_new && header.since_5.type != DW_UT_compile) || !is_independent(image, table) ||
        !debug_image_need(image, DEBUG_INFO, at, size))
        return NULL;
    return debug_image_unit(image, at, size);
}

bool separate_unit_find(struct debug_image *image, uint64_t at, Dwarf_Die *unit) {
    Dwarf_CU *of = NULL;
    Dwarf *dwarf = debug_image_known_unit(image, at);
    if (!dwarf && !image->whole.elf)
        dwarf = open_unit(image, at);
    return dwarf && dwarf_get_units(dwarf, of, &of, NULL, NULL, unit, NULL) == 0;
}
