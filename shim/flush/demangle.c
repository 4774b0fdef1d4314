#include "demangle.h"

#include <libiberty/demangle.h>
#include <stddef.h>
#include <string.h>

/* Template-heavy names grow exponentially when written out. */
enum { MAX_MANGLED = 2048 };

char *demangle(const char *name) {
    if (name[0] != '_' || strnlen(name, MAX_MANGLED) == MAX_MANGLED)
        return NULL;
    if (name[1] != 'Z' && name[1] != 'R')
        return NULL;
    char *const rust = rust_demangle(name, DMGL_NO_OPTS);
    return rust ? rust : cplus_demangle_v3(name, DMGL_ANSI);
}
