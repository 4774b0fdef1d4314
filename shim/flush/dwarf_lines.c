#include "dwarf_lines.h"

#include <dwarf.h>
#include <stdlib.h>

/* Without .debug_aranges every unit must be asked. */
static bool unit_by_search(Dwarf *dwarf, uint64_t address, Dwarf_Die *unit) {
    Dwarf_CU *at = NULL;
    Dwarf_Die die;
    while (dwarf_get_units(dwarf, at, &at, NULL, NULL, &die, NULL) == 0) {
        if (dwarf_haspc(&die, address) != 1)
            continue;
        *unit = die;
        return true;
    }
    return false;
}

static bool unit_of(Dwarf *dwarf, uint64_t address, Dwarf_Die *unit) {
    return dwarf_addrdie(dwarf, address, unit) != NULL || unit_by_search(dwarf, address, unit);
}

static const char *string_attribute(Dwarf_Die *die, unsigned name) {
    Dwarf_Attribute attribute;
    return dwarf_formstring(dwarf_attr_integrate(die, name, &attribute));
}

/* The linkage name tells more: it has the scope. */
static const char *name_of(Dwarf_Die *die) {
    const char *name = string_attribute(die, DW_AT_linkage_name);
    if (!name)
        name = string_attribute(die, DW_AT_MIPS_linkage_name);
    return name ? name : dwarf_diename(die);
}

static int start_line_of(Dwarf_Die *die) {
    int line = 0;
    return dwarf_decl_line(die, &line) == 0 ? line : 0;
}

static int int_attribute(Dwarf_Die *die, unsigned name) {
    Dwarf_Attribute attribute;
    Dwarf_Word value = 0;
    if (dwarf_formudata(dwarf_attr(die, name, &attribute), &value) != 0)
        return 0;
    return (int)value;
}

static const char *call_file(Dwarf_Die *unit, Dwarf_Die *inlined) {
    Dwarf_Files *files;
    size_t count;
    const int number = int_attribute(inlined, DW_AT_call_file);
    if (dwarf_getsrcfiles(unit, &files, &count) != 0 || number < 0 || (size_t)number >= count)
        return "";
    const char *const name = dwarf_filesrc(files, (size_t)number, NULL, NULL);
    return name ? name : "";
}

/* Where the innermost code is; each inlined function then says where it was called. */
struct place {
    const char *file;
    int line;
};

static struct place place_of(Dwarf_Die *unit, uint64_t address) {
    struct place place = {"", 0};
    Dwarf_Line *const line = dwarf_getsrc_die(unit, address);
    const char *const file = line ? dwarf_linesrc(line, NULL, NULL) : NULL;
    if (!file)
        return place;
    place.file = file;
    dwarf_lineno(line, &place.line);
    return place;
}

static size_t lines_of_scopes(Dwarf_Die *unit, Dwarf_Die *scopes, int count, struct place place,
                              struct symbol_line *lines, size_t max) {
    size_t found = 0;
    for (int i = 0; i < count && found < max; i++) {
        Dwarf_Die *const scope = &scopes[i];
        const int tag = dwarf_tag(scope);
        if (tag != DW_TAG_subprogram && tag != DW_TAG_inlined_subroutine)
            continue;
        const char *const name = name_of(scope);
        if (!name)
            return 0;
        lines[found++] = (struct symbol_line){.system_name = name,
                                              .file = place.file,
                                              .line = place.line,
                                              .start_line = start_line_of(scope)};
        if (tag == DW_TAG_subprogram)
            return found;
        place = (struct place){call_file(unit, scope), int_attribute(scope, DW_AT_call_line)};
    }
    return found;
}

/* --- functions inside of namespaces --- */

enum { MAX_NESTING = 64 };

/* false: the last one, or in a broken file one that was seen before. */
static bool next_sibling(Dwarf_Die *die) {
    const Dwarf_Off here = dwarf_dieoffset(die);
    return dwarf_siblingof(die, die) == 0 && dwarf_dieoffset(die) > here;
}

static bool holds_functions(int tag) {
    return tag == DW_TAG_namespace || tag == DW_TAG_module || tag == DW_TAG_class_type ||
           tag == DW_TAG_structure_type || tag == DW_TAG_union_type;
}

static bool function_below(Dwarf_Die *parent, uint64_t address, int nesting, Dwarf_Die *function) {
    Dwarf_Die child;
    if (nesting == MAX_NESTING || dwarf_child(parent, &child) != 0)
        return false;
    do {
        const int tag = dwarf_tag(&child);
        if (tag == DW_TAG_subprogram && dwarf_haspc(&child, address) == 1) {
            *function = child;
            return true;
        }
        if (holds_functions(tag) && function_below(&child, address, nesting + 1, function))
            return true;
    } while (next_sibling(&child));
    return false;
}

static bool child_with(Dwarf_Die *parent, uint64_t address, Dwarf_Die *child) {
    if (dwarf_child(parent, child) != 0)
        return false;
    do {
        if (dwarf_haspc(child, address) == 1)
            return true;
    } while (next_sibling(child));
    return false;
}

/* clang and rustc put functions into the entry of their namespace. That has no code of its own, so
 * dwarf_getscopes() does not look into it. Innermost first, as there; 0: none, or no memory. */
static int scopes_in_namespaces(Dwarf_Die *unit, uint64_t address, Dwarf_Die **scopes) {
    Dwarf_Die path[MAX_NESTING];
    int count = 1;
    if (!function_below(unit, address, 0, &path[0]))
        return 0;
    while (count < MAX_NESTING && child_with(&path[count - 1], address, &path[count]))
        count++;
    *scopes = calloc((size_t)count, sizeof **scopes);
    for (int i = 0; *scopes && i < count; i++)
        (*scopes)[i] = path[count - 1 - i];
    return *scopes ? count : 0;
}

/* The entries that enclose the code itself: dwarf_getscopes() finds the innermost, but goes on from
 * an inlined function to where it was declared, not to where it was inlined. */
static int physical_scopes(Dwarf_Die *unit, uint64_t address, Dwarf_Die **scopes) {
    Dwarf_Die *lexical = NULL;
    const int count = dwarf_getscopes(unit, address, &lexical);
    if (count == 0)
        return scopes_in_namespaces(unit, address, scopes);
    const int physical = count > 0 ? dwarf_getscopes_die(&lexical[0], scopes) : count;
    free(lexical);
    return physical;
}

size_t dwarf_lines(Dwarf *dwarf, uint64_t address, struct symbol_line *lines, size_t max) {
    Dwarf_Die unit;
    Dwarf_Die *scopes = NULL;
    size_t found = 0;
    if (max == 0 || !unit_of(dwarf, address, &unit))
        return 0;
    const struct place place = place_of(&unit, address);
    const int count = physical_scopes(&unit, address, &scopes);
    if (count > 0)
        found = lines_of_scopes(&unit, scopes, count, place, lines, max);
    free(scopes);
    if (found > 0 || place.line == 0)
        return found;
    /* functions may be left out (clang's -g1), or in other files (-gsplit-dwarf), which can be
     * large */
    lines[0] = (struct symbol_line){.file = place.file, .line = place.line};
    return 1;
}
