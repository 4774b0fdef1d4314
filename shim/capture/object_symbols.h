/* What a loaded object defines, read from its own tables: for what dlsym() does not tell, and where
 * there is no dlsym(). */
#ifndef OTELPROF_OBJECT_SYMBOLS_H
#define OTELPROF_OBJECT_SYMBOLS_H

#include <link.h>
#include <stdbool.h>

/* This shared object, in the loader's list (l_prev, l_next: in the order of search, then of
 * dlopen); NULL without glibc. Context: calm. */
const struct link_map *object_symbols_own(void);

/* Where `object` defines `name`, whatever its version; NULL if it does not. Context: calm, while
 * the object stays loaded. */
void *object_symbols_find(const struct link_map *object, const char *name);

/* Whether what `object` asks of others, weakly or not, has a name that `is_wanted`. Context:
 * likewise. */
bool object_symbols_refers(const struct link_map *object, bool (*is_wanted)(const char *name));

#endif
