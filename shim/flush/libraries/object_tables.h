/* Reads a loaded object's own tables, and changes them in memory.
 *
 * The loader keeps pointers into an object's dynamic section and reads some values late: the
 * destructors when the process ends. Calls to other objects use slots that the loader has filled.
 * Both are mostly in parts that the loader has made read-only (PT_GNU_RELRO). Every address is
 * checked against the object's segments before it is followed; an invalid one counts as missing.
 * Context: flush, inside dl_iterate_phdr(), or while the object cannot be unloaded.
 */
#ifndef OTELPROF_OBJECT_TABLES_H
#define OTELPROF_OBJECT_TABLES_H

#include "dynamic_object.h"

struct object_tables {
    struct object_segments segments; /* the loader owns the headers */
    struct dynamic_object dynamic;
};

/* Opens the object's tables. Returns false if the object has no readable dynamic section. */
bool object_tables_open(struct object_tables *tables, const struct dl_phdr_info *info);

/* Returns DT_SONAME, or NULL. */
const char *object_tables_soname(const struct object_tables *tables);

/* Returns true if the object needs `soname` (DT_NEEDED). */
bool object_tables_need(const struct object_tables *tables, const char *soname);

/* Describes how an object refers to a symbol. */
struct object_reference {
    const char *name;
    bool is_import; /* the object does not define it */
    /* place of the address that the loader has bound; NULL: another kind of reference */
    uintptr_t *slot;
};

/* Visits the references, calls first, until `visit` returns true; returns true if it did. */
bool object_tables_visit(const struct object_tables *tables,
                         bool (*visit)(const struct object_reference *reference, void *arg),
                         void *arg);

/* Returns the slot with the address of an imported function; NULL if the object imports none of
 * that name, or has no slot for it. */
uintptr_t *object_tables_import(const struct object_tables *tables, const char *name);

/* Returns one of `names` (the last is NULL) that the object imports, for a call or for the address;
 * NULL: it imports none. Reads the tables once for all names. */
const char *object_tables_refer(const struct object_tables *tables, const char *const *names);

/* Make the part that is read-only after relocation writable, and read-only again.
 * object_tables_unlock() returns false if the kernel refuses. */
bool object_tables_unlock(const struct object_tables *tables);
void object_tables_lock(const struct object_tables *tables);

#endif
