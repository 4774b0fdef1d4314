#include "dwarf_lines.h"

#include "symbol_table.h"

#include <dwarf.h>
#include <limits.h>
#include <stdbool.h>
#include <string.h>

/* Bounds the scopes that are listed within a function; scopes further in are left out. */
enum { MAX_SCOPES = 64 };

/* Returns the text; NULL, as if it were not known, if it is longer than `max`. */
static const char *bounded_text(const char *text, size_t max) {
    return text && strnlen(text, max) < max ? text : NULL;
}

static const char *string_attribute(Dwarf_Die *die, unsigned name) {
    Dwarf_Attribute attribute;
    return bounded_text(dwarf_formstring(dwarf_attr_integrate(die, name, &attribute)),
                        MAX_SYMBOL_NAME);
}

static int int_attribute(Dwarf_Die *die, unsigned name) {
    Dwarf_Attribute attribute;
    Dwarf_Word value = 0;
    if (dwarf_formudata(dwarf_attr(die, name, &attribute), &value) != 0)
        return 0;
    return (int)value;
}

static const char *dwarf_call_file(Dwarf_Die *unit, Dwarf_Die *inlined, bool lines_allowed) {
    Dwarf_Files *files;
    size_t count;
    const int number = int_attribute(inlined, DW_AT_call_file);
    if (!lines_allowed || dwarf_getsrcfiles(unit, &files, &count) != 0 || number < 0 ||
        (size_t)number >= count)
        return "";
    const char *const name =
        bounded_text(dwarf_filesrc(files, (size_t)number, NULL, NULL), PATH_MAX);
    return name ? name : "";
}

/* Holds the place of the innermost code; each inlined function then replaces it by its call
 * site. */
struct place {
    const char *file;
    int line;
    bool lines_allowed;
};

static struct place place_of(Dwarf_Die *unit, uint64_t address, bool lines_allowed) {
    struct place place = {"", 0, lines_allowed};
    Dwarf_Line *const line = lines_allowed ? dwarf_getsrc_die(unit, address) : NULL;
    const char *const file = line ? bounded_text(dwarf_linesrc(line, NULL, NULL), PATH_MAX) : NULL;
    if (!file)
        return place;
    place.file = file;
    dwarf_lineno(line, &place.line);
    return place;
}

/* Lists the lines of `scopes`, which are nested, the function first. Returns their number; 0 if one
 * of the functions has no name. */
static size_t lines_of_scopes(Dwarf_Die *unit, Dwarf_Die *scopes, int count, struct place place,
                              struct symbol_line *lines, size_t max) {
    size_t found = 0;
    for (int i = count - 1; i >= 0 && found < max; i--) {
        Dwarf_Die *const scope = &scopes[i];
        const int tag = dwarf_tag(scope);
        if (tag != DW_TAG_subprogram && tag != DW_TAG_inlined_subroutine)
            continue;
        /* the linkage name is preferred, because it includes the scope */
        const char *name = string_attribute(scope, DW_AT_linkage_name);
        if (!name)
            name = string_attribute(scope, DW_AT_MIPS_linkage_name);
        if (!name)
            name = bounded_text(dwarf_diename(scope), MAX_SYMBOL_NAME);
        if (!name)
            return 0;
        int start_line = 0;
        if (dwarf_decl_line(scope, &start_line) != 0)
            start_line = 0;
        lines[found++] = (struct symbol_line){
            .system_name = name, .file = place.file, .line = place.line, .start_line = start_line};
        if (tag == DW_TAG_subprogram)
            return found;
        place.file = dwarf_call_file(unit, scope, place.lines_allowed);
        place.line = int_attribute(scope, DW_AT_call_line);
    }
    return found;
}

/* Moves to the next sibling. Returns false at the last one, or in a broken file at an entry that
 * was seen before. */
static bool next_sibling(Dwarf_Die *die) {
    const Dwarf_Off here = dwarf_dieoffset(die);
    return dwarf_siblingof(die, die) == 0 && dwarf_dieoffset(die) > here;
}

/* Finds the entry right below `parent` whose code is around `address`. Follows the places where
 * code was inlined, where dwarf_getscopes() would follow the declarations. */
static bool scope_below(Dwarf_Die *parent, uint64_t address, Dwarf_Die *scope) {
    if (dwarf_child(parent, scope) != 0)
        return false;
    do {
        if (dwarf_haspc(scope, address) == 1)
            return true;
    } while (next_sibling(scope));
    return false;
}

size_t dwarf_lines(struct dwarf_functions *functions, uint64_t address, struct symbol_line *lines,
                   size_t max, bool *partial) {
    Dwarf_Die unit;
    Dwarf_Die scopes[MAX_SCOPES];
    size_t found = 0;
    int count = 1;
    if (max == 0 || !dwarf_functions_unit(functions, address, &unit))
        return 0;
    const enum dwarf_lines_permission permission = dwarf_functions_lines(functions, &unit);
    const struct place place = place_of(&unit, address, permission == LINES_ALLOWED);
    *partial |= permission == LINES_FULL;
    if (dwarf_functions_find(functions, &unit, address, &scopes[0])) {
        while (count < MAX_SCOPES && scope_below(&scopes[count - 1], address, &scopes[count]))
            count++;
        found = lines_of_scopes(&unit, scopes, count, place, lines, max);
    }
    if (found > 0 || place.line == 0)
        return found;
    /* functions may be missing (clang's -g1), or in other files (-gsplit-dwarf), which can be large
     */
    lines[0] = (struct symbol_line){.file = place.file, .line = place.line};
    return 1;
}
