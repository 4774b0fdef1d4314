/* What a loaded object's own tables say, and changing them in memory.
 *
 * The loader keeps pointers into an object's dynamic section and reads some of its values late: the
 * destructors' when the process ends. Calls to other objects go through slots that it has filled.
 * Both mostly lie in what it has made read-only since (PT_GNU_RELRO). Every address is looked up in
 * the object's segments before it is followed; what does not fit is as if it were not there.
 * Context: flush, inside dl_iterate_phdr(), or while the object cannot be unloaded.
 */
#ifndef OTELPROF_OBJECT_TABLES_H
#define OTELPROF_OBJECT_TABLES_H

#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct object_tables {
    struct dl_phdr_info info; /* its name and headers are the loader's */
    ElfW(Dyn) * dynamic;      /* without DT_NULL */
    size_t count;
};

/* false: the object has no dynamic section that it could be read from. */
bool object_tables_open(struct object_tables *tables, const struct dl_phdr_info *info);

/* The entry that the loader uses, or NULL. */
Elf64_Dyn *object_tables_entry(const struct object_tables *tables, Elf64_Sxword tag);

/* DT_SONAME, or NULL. */
const char *object_tables_soname(const struct object_tables *tables);

/* Whether the object has `soname` loaded for itself (DT_NEEDED). */
bool object_tables_need(const struct object_tables *tables, const char *soname);

/* Where the object keeps the address of another's function; NULL if it asks for none of that name.
 */
uintptr_t *object_tables_import(const struct object_tables *tables, const char *name);

/* Which of `names` (the last is NULL) the object asks others for, by a call or for the address;
 * NULL: none. One pass, whatever the number of names. */
const char *object_tables_refer(const struct object_tables *tables, const char *const *names);

/* Around changes: what is read-only after relocation can be written. false: refused. */
bool object_tables_unlock(const struct object_tables *tables);
void object_tables_lock(const struct object_tables *tables);

/* Whether `size` bytes at `address` lie in one segment with those PF_ flags. */
bool object_tables_span(const struct object_tables *tables, uintptr_t address, size_t size,
                        Elf64_Word flags);

#endif
