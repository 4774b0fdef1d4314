#include "dwarf_functions.h"

#include "address_ranges.h"
#include "separate_units.h"

#include <dwarf.h>
#include <search.h>
#include <stdlib.h>

enum {
    MAX_NESTING = 64,
    /* Bounds the ranges of one entry, and the sum for all functions of a unit or all units of a
     * file: many entries may refer to one list of ranges. The kernel's largest unit has some ten
     * thousand functions. */
    MAX_RANGES_OF_ONE = 4096,
    MAX_RANGES = 1 << 18,
    /* Bounds the bytes of a line program, and of all line programs that are read until the image is
     * closed. The largest units (sqlite3.c, V8's) have 0.4 MB. */
    MAX_LINE_PROGRAM = 1 << 20,
    MAX_LINE_PROGRAMS = 4 << 20,
};

struct unit_functions {
    const struct Dwarf_CU *unit;
    bool lines_read;
    struct address_ranges ranges; /* values: offsets of the entries of functions */
};

struct dwarf_functions {
    struct debug_image *image;
    uint64_t line_bytes;            /* bytes of the line programs that were read */
    struct address_ranges separate; /* values: offsets of units */
    bool has_units;
    struct address_ranges units; /* units of the whole file; values: offsets of their entries */
    void *known;                 /* tsearch's tree of struct unit_functions, by unit */
};

static void add_code_of(struct address_ranges *ranges, Dwarf_Die *die) {
    Dwarf_Addr base;
    Dwarf_Addr low;
    Dwarf_Addr high;
    ptrdiff_t at = 0;
    for (int i = 0; i < MAX_RANGES_OF_ONE && ranges->count < MAX_RANGES; i++) {
        at = dwarf_ranges(die, at, &base, &low, &high);
        if (at <= 0)
            return;
        address_ranges_add(ranges, low, high, dwarf_dieoffset(die));
    }
}

/* --- units --- */

static void read_units(struct dwarf_functions *functions, Dwarf *whole) {
    Dwarf_CU *at = NULL;
    Dwarf_Die unit;
    while (dwarf_get_units(whole, at, &at, NULL, NULL, &unit, NULL) == 0)
        add_code_of(&functions->units, &unit);
    address_ranges_sort(&functions->units);
    functions->has_units = true;
}

/* Finds the unit in the whole file, even if that has no .debug_aranges: clang does not write this
 * section. */
static bool find_in_whole(struct dwarf_functions *functions, uint64_t address, Dwarf_Die *unit) {
    uint64_t offset;
    Dwarf *const whole = debug_image_whole(functions->image);
    if (dwarf_addrdie(whole, address, unit))
        return true;
    if (whole && !functions->has_units)
        read_units(functions, whole);
    return address_ranges_find(&functions->units, address, &offset) &&
           dwarf_offdie(whole, offset, unit);
}

bool dwarf_functions_unit(struct dwarf_functions *functions, uint64_t address, Dwarf_Die *unit) {
    uint64_t at;
    return (address_ranges_find(&functions->separate, address, &at) &&
            separate_unit_find(functions->image, at, unit)) ||
           find_in_whole(functions, address, unit);
}

/* --- functions of a unit --- */

/* Walks the entries of a unit. Their offsets ascend in a correct file; a lower offset ends the
 * walk, so that each entry is visited at most once. */
struct walk {
    struct address_ranges *ranges;
    Dwarf_Off last;
};

static void read_below(struct walk *walk, Dwarf_Die *parent, int nesting) {
    Dwarf_Die child;
    if (nesting == MAX_NESTING || dwarf_child(parent, &child) != 0)
        return;
    do {
        const Dwarf_Off offset = dwarf_dieoffset(&child);
        if (offset <= walk->last)
            return;
        walk->last = offset;
        const int tag = dwarf_tag(&child);
        if (tag == DW_TAG_subprogram)
            add_code_of(walk->ranges, &child);
        else if (tag == DW_TAG_namespace || tag == DW_TAG_module || tag == DW_TAG_class_type ||
                 tag == DW_TAG_structure_type || tag == DW_TAG_union_type)
            read_below(walk, &child, nesting + 1);
    } while (dwarf_siblingof(&child, &child) == 0);
}

static int by_unit(const void *a, const void *b) {
    const struct unit_functions *const left = a;
    const struct unit_functions *const right = b;
    return (left->unit > right->unit) - (left->unit < right->unit);
}

static void free_unit(void *node) {
    struct unit_functions *const unit = node;
    address_ranges_free(&unit->ranges);
    free(unit);
}

static struct unit_functions *read_unit(struct dwarf_functions *functions, Dwarf_Die *die) {
    struct unit_functions *const unit = calloc(1, sizeof *unit);
    if (!unit)
        return NULL;
    unit->unit = die->cu;
    struct walk walk = {.ranges = &unit->ranges, .last = dwarf_dieoffset(die)};
    read_below(&walk, die, 0);
    address_ranges_sort(&unit->ranges);
    if (tsearch(unit, &functions->known, by_unit))
        return unit;
    free_unit(unit);
    return NULL;
}

static struct unit_functions *functions_of(struct dwarf_functions *functions, Dwarf_Die *die) {
    const struct unit_functions key = {.unit = die->cu};
    struct unit_functions *const *const known = tfind(&key, &functions->known, by_unit);
    return known ? *known : read_unit(functions, die);
}

/* --- the interface --- */

struct dwarf_functions *dwarf_functions_open(struct debug_image *image) {
    struct dwarf_functions *const functions = calloc(1, sizeof *functions);
    if (!functions)
        return NULL;
    functions->image = image;
    if (!image->whole.dwarf)
        separate_units_ranges(image, &functions->separate);
    return functions;
}

enum dwarf_lines_permission dwarf_functions_lines(struct dwarf_functions *functions,
                                                  Dwarf_Die *die) {
    Dwarf_Attribute attribute;
    Dwarf_Word offset;
    struct unit_functions *const unit = functions_of(functions, die);
    if (!unit || dwarf_formudata(dwarf_attr(die, DW_AT_stmt_list, &attribute), &offset) != 0)
        return LINES_NEVER;
    if (unit->lines_read)
        return LINES_ALLOWED;
    const uint64_t bytes = debug_image_line_bytes(functions->image, offset, MAX_LINE_PROGRAM);
    if (bytes == 0 || bytes > MAX_LINE_PROGRAM)
        return LINES_NEVER;
    if (functions->line_bytes + bytes > MAX_LINE_PROGRAMS)
        return LINES_FULL;
    functions->line_bytes += bytes;
    unit->lines_read = true;
    return LINES_ALLOWED;
}

bool dwarf_functions_find(struct dwarf_functions *functions, Dwarf_Die *unit, uint64_t address,
                          Dwarf_Die *function) {
    uint64_t offset;
    const struct unit_functions *const of_unit = functions_of(functions, unit);
    return of_unit && address_ranges_find(&of_unit->ranges, address, &offset) &&
           dwarf_offdie(dwarf_cu_getdwarf(unit->cu), offset, function);
}

void dwarf_functions_close(struct dwarf_functions *functions) {
    if (!functions)
        return;
    tdestroy(functions->known, free_unit);
    address_ranges_free(&functions->separate);
    address_ranges_free(&functions->units);
    free(functions);
}
