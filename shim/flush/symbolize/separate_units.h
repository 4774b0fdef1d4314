/* Finds the units of a file's debug information that can be read without the others.
 *
 * .debug_aranges has the unit of an address. A unit is independent if no attribute in it leads into
 * another unit or another file; its abbreviations show that. Compilers write such units; link-time
 * optimization and dwz do not. Context: flush.
 */
#ifndef OTELPROF_SEPARATE_UNITS_H
#define OTELPROF_SEPARATE_UNITS_H

#include "address_ranges.h"
#include "debug_image.h"

#include <stdbool.h>

/* Adds the ranges of addresses in .debug_aranges, with the offsets of their units, and sorts them.
 */
void separate_units_ranges(const struct debug_image *image, struct address_ranges *ranges);

/* Stores the entry of the unit at that offset. Returns false if the unit is not independent. A unit
 * that was not found before is not found, either, if there is no room for another image, or if the
 * whole file has already been read. */
bool separate_unit_find(struct debug_image *image, uint64_t at, Dwarf_Die *unit);

#endif
