/* Visits the addresses of functions that the loader has written into a loaded object: into its
 * procedure linkage table, its global offset table, its data. If such an address is replaced, the
 * object calls another function from then on. Data that held the function's address is treated
 * alike, so that comparisons of addresses give the same results as before. */
#ifndef OTELPROF_CALL_SITES_H
#define OTELPROF_CALL_SITES_H

#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One call site, of a function that the object does not define itself. */
struct call_site {
    const char *name; /* the function's */
    uintptr_t value;  /* the present contents */
    bool is_unbound;  /* the loader will write there at the first call */
    const struct call_sites_of *object;
    size_t symbol; /* its number there */
};

/* Returns the address to write to the site; 0: the site stays. May be called again for a site that
 * was changed. */
typedef uintptr_t call_site_rule(const struct call_site *site);

struct call_site_counts {
    uint32_t bound;
    uint32_t refused; /* entries that the kernel would not let us write */
};

/* Calls `rule` for each call site of the objects loaded since the loader's counter was `adds`,
 * advances `adds`, and adds up the results. Our own sites are left alone. Read-only pages are
 * read-only again afterwards. An entry that another thread writes meanwhile keeps that value.
 * Context: calm, while all loaded objects stay, and are relocated: under the loader's lock, or at
 * start. */
void call_sites_bind_new(uint64_t *adds, call_site_rule *rule, struct call_site_counts *counts);

/* Returns the version that the object asks for ("GLIBC_2.2.5"), or NULL. Context: a rule. */
const char *call_site_version(const struct call_site *site);

#endif
