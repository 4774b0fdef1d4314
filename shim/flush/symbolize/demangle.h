/* Names as people write them, for C++ (Itanium ABI) and Rust (both manglings), by libiberty.
 * Context: flush.
 */
#ifndef OTELPROF_DEMANGLE_H
#define OTELPROF_DEMANGLE_H

/* The readable form of `name`, malloc'ed, the caller's; NULL if it is not mangled, too long to be
 * worth it, or there is no memory. Parameters are left out: the mangled name tells overloads apart.
 */
char *demangle(const char *name);

#endif
