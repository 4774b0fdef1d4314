#include "python_lines.h"

#include <stdbool.h>

/* Lists the bits of an entry's first byte: a mark, the form of its location, and its number of
 * instructions less one. Later bytes have no mark. */
enum {
    ENTRY_MARK = 0x80,
    FORM_SHIFT = 3,
    FORM_MASK = 15,
    LENGTH_MASK = 7,
    FORM_ONE_LINE = 10, /* 10 to 12: the form itself is the number of lines to add, plus 10 */
    FORM_NO_COLUMNS = 13,
    FORM_LONG = 14,
    FORM_NO_LINE = 15,
};

/* Defines the encoding of numbers: six bits in each byte, the lowest bits first. */
enum { VARINT_BITS = 6, VARINT_MASK = 63, VARINT_MORE = 64, VARINT_MOST_BITS = 30 };

struct table {
    const uint8_t *at;
    const uint8_t *end;
};

static uint32_t read_varint(struct table *table) {
    uint32_t value = 0;
    for (unsigned shift = 0; table->at < table->end && shift <= VARINT_MOST_BITS;
         shift += VARINT_BITS) {
        const uint8_t byte = *table->at++;
        value |= (uint32_t)(byte & VARINT_MASK) << shift;
        if (!(byte & VARINT_MORE))
            break;
    }
    return value;
}

/* Reads a signed number, whose lowest bit is the sign. */
static uint32_t read_signed(struct table *table) {
    const uint32_t value = read_varint(table);
    return value & 1 ? 0 - (value >> 1) : value >> 1;
}

int python_line(const uint8_t *table, uint32_t size, int first_line, uint32_t position) {
    struct table rest = {table, table + size};
    uint32_t line = (uint32_t)first_line;
    uint32_t passed = 0;
    while (rest.at < rest.end) {
        const uint8_t entry = *rest.at++;
        const unsigned form = entry >> FORM_SHIFT & FORM_MASK;
        /* adds the difference to the previous entry's line; values of an unsound table wrap
         * around */
        if (form == FORM_NO_COLUMNS || form == FORM_LONG)
            line += read_signed(&rest);
        else if (form > FORM_ONE_LINE && form < FORM_NO_COLUMNS)
            line += form - FORM_ONE_LINE;
        while (rest.at < rest.end && !(*rest.at & ENTRY_MARK)) /* skips the columns */
            rest.at++;
        passed += (entry & LENGTH_MASK) + 1u;
        if (passed > position)
            return form == FORM_NO_LINE || (int32_t)line < 0 ? 0 : (int)line;
    }
    return 0;
}
