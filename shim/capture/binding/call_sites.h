/* Visits the addresses of functions that the loader has written into a loaded object: into its
 * procedure linkage table, its global offset table, its data. If such an address is replaced, the
 * object calls another function from then on. Pointers in data are replaced, too, so that
 * comparisons of addresses give the same results as before. */
#ifndef OTELPROF_CALL_SITES_H
#define OTELPROF_CALL_SITES_H

#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Describes a place that holds the address of a function of another object. */
struct call_site {
    const char *name; /* name of the function */
    uintptr_t value;  /* present contents of the place */
    bool is_unbound;  /* the loader will write the address at the first call */
    const struct call_sites_of *object;
    size_t symbol; /* number of the symbol in the object's table */
};

/* Returns the address to write to the site; 0: leave the site as it is. May be called again for a
 * site that was changed. */
typedef uintptr_t call_site_rule(const struct call_site *site);

struct call_site_counts {
    uint32_t bound;
    uint32_t refused; /* number of entries that the kernel refused to make writable */
};

/* Calls `rule` for each call site of the objects loaded since the loader's counter was `adds`,
 * advances `adds`, and adds up the results. Skips our own sites. Read-only pages are read-only
 * again afterwards. An entry that another thread writes meanwhile keeps the thread's value.
 * Context: calm, while no object is unloaded or half relocated: under the loader's lock, or at
 * start. */
void call_sites_bind_new(uint64_t *adds, call_site_rule *rule, struct call_site_counts *counts);

/* Returns the version that the object imports ("GLIBC_2.2.5"), or NULL. Context: a rule. */
const char *call_site_version(const struct call_site *site);

#endif
