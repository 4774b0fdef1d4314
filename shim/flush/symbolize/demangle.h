/* Makes readable names for C++ (Itanium ABI) and Rust (both manglings), by libiberty; for D, OCaml
 * and Haskell by decoders of our own, whose results are never longer than their input allows.
 * Context: flush. */
#ifndef OTELPROF_DEMANGLE_H
#define OTELPROF_DEMANGLE_H

#include "harvest.h"

/* Returns true for a mangled name, by its beginning, and for Haskell by its end. */
bool is_mangled(const char *name);

/* Returns the readable form of `name`, malloc'ed, the caller's; NULL if it is not mangled, or too
 * long, or there is no memory. Parameters are left out, because the mangled name distinguishes
 * overloads. */
char *demangle(const char *name);

/* Does what demangle() does, within a budget. Returns false if the budget was exceeded. */
bool demangle_within(memory_guard *guarded, const struct work_budget *budget, const char *name,
                     char **text);

#endif
