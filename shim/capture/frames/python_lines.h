/* Finds the line of an instruction of a Python function in the location table of its code object.
 *
 * The table has an entry for each run of instructions: their number, and the difference of their
 * line to the previous entry's. So it can only be read from its beginning. The helper reads it; a
 * signal handler merely copies the table. Source: CPython 3.11 to 3.14, "locations.md"
 * (InternalDocs/code_objects.md from 3.14 on), PEP 657.
 */
#ifndef OTELPROF_PYTHON_LINES_H
#define OTELPROF_PYTHON_LINES_H

#include <stdint.h>

/* Returns the line of the instruction at `position`, an index of code units of two bytes;
 * `first_line` is the function's. Returns 0 if the instruction has no line, or lies behind the end
 * of the table. Context: any. Async-signal-safe: yes. */
int python_line(const uint8_t *table, uint32_t size, int first_line, uint32_t position);

#endif
