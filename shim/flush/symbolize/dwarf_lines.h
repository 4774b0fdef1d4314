/* Finds files, lines and inlined functions of one address, from DWARF by libdw. Context: flush. */
#ifndef OTELPROF_DWARF_LINES_H
#define OTELPROF_DWARF_LINES_H

#include "dwarf_functions.h"
#include "symbolize.h"

/* Stores the chain of functions at the ELF virtual `address`, inlined callee first, and returns
 * their number; 0 if the debug information does not cover the address. Names are the file's
 * (`system_name`; `function` stays NULL); the strings belong to the image of `functions`. If there
 * is a line but no function, there is one entry without a name. Sets `*partial` if lines are left
 * out that may be read when the image is opened another time. */
size_t dwarf_lines(struct dwarf_functions *functions, uint64_t address, struct symbol_line *lines,
                   size_t max, bool *partial);

#endif
