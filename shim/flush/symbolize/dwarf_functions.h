/* Finds the function of a file around an address, by its debug information.
 *
 * libdw searches a unit's entries from the beginning for each address, but not those of namespaces,
 * where clang and rustc put functions. This module reads all of a unit's functions once, at the
 * first address in the unit. Context: flush.
 */
#ifndef OTELPROF_DWARF_FUNCTIONS_H
#define OTELPROF_DWARF_FUNCTIONS_H

#include "debug_image.h"

#include <stdbool.h>
#include <stdint.h>

struct dwarf_functions;

/* Opens the functions of an image, which must stay open longer than the result. Returns NULL
 * without memory. */
struct dwarf_functions *dwarf_functions_open(struct debug_image *image);

/* Stores the unit around the ELF virtual `address`. Returns false if the debug information does not
 * cover it.
 */
bool dwarf_functions_unit(struct dwarf_functions *functions, uint64_t address, Dwarf_Die *unit);

/* Stores the function of `unit` around the address: its entry with code, not its declaration.
 * Returns false if there is none, or no memory. */
bool dwarf_functions_find(struct dwarf_functions *functions, Dwarf_Die *unit, uint64_t address,
                          Dwarf_Die *function);

/* Limits the line programs that are read, because at worst libdw allocates a hundred bytes for each
 * of their bytes, and keeps them while the image is open. */
enum dwarf_lines_permission {
    LINES_NEVER, /* the unit has no lines, or too many */
    /* too many lines were read since the image was opened; another time they may be read */
    LINES_FULL,
    LINES_ALLOWED, /* the lines may be read, and are counted as read */
};
enum dwarf_lines_permission dwarf_functions_lines(struct dwarf_functions *functions,
                                                  Dwarf_Die *unit);

/* Closes the functions. NULL is allowed. */
void dwarf_functions_close(struct dwarf_functions *functions);

#endif
