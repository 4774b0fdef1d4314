/* Makes readable names for C++ (Itanium ABI) and Rust (both manglings), by libiberty; for D, OCaml
 * and Haskell by decoders of our own, whose results are bounded (name_text.h). Context: flush. */
#ifndef OTELPROF_DEMANGLE_H
#define OTELPROF_DEMANGLE_H

#include "harvest.h"

/* Returns true for a mangled name. C++ and Rust are recognized by the name's beginning; names of
 * the other languages are decoded for that. */
bool is_mangled(const char *name);

/* Returns the readable form of `name`, malloc'ed, the caller's; NULL if it is not mangled, or too
 * long, or there is no memory. Parameters are left out, because the mangled name distinguishes
 * overloads. */
char *demangle(const char *name);

/* Works as demangle(), within a budget: `*text` has the result. Returns false, and `*text` is NULL,
 * if the budget was exceeded. */
bool demangle_within(memory_guard *guarded, const struct work_budget *budget, const char *name,
                     char **text);

#endif
