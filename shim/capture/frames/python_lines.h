/* From an instruction of a Python function to its line, by the location table of the code object.
 *
 * The table has an entry for each run of instructions: how many there are, and how far the line is
 * from that of the entry before. It is read from its beginning on, by the helper; so what a handler
 * keeps of a function is the table as it is.
 * Source: CPython 3.11 to 3.14, "locations.md" (InternalDocs/code_objects.md from 3.14 on), PEP
 * 657.
 */
#ifndef OTELPROF_PYTHON_LINES_H
#define OTELPROF_PYTHON_LINES_H

#include <stdint.h>

/* The line of instruction number `position`, which counts code units of two bytes; `first_line` is
 * the function's. 0: it has none, or lies behind the end of the table. Context: any.
 * Async-signal-safe: yes. */
int python_line(const uint8_t *table, uint32_t size, int first_line, uint32_t position);

#endif
