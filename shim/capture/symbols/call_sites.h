/* The addresses of functions that the loader has put into a loaded object: into its procedure
 * linkage table, its global offset table, its data. Whoever makes another's address of one has that
 * called there from then on. Data that held the function's address is treated alike, so that
 * comparisons of addresses come out as before.
 */
#ifndef OTELPROF_CALL_SITES_H
#define OTELPROF_CALL_SITES_H

#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One of them, of a function that the object does not define itself. */
struct call_site {
    const char *name; /* of the function */
    uintptr_t value;  /* what is there */
    bool is_unbound;  /* the loader will write there when it is first called */
    const struct call_sites_of *object;
    size_t symbol; /* its number there */
};

/* The address to put there; 0: none. It may be asked again about what it has changed. */
typedef uintptr_t call_site_rule(const struct call_site *site);

struct call_site_counts {
    uint32_t bound;
    uint32_t refused; /* the kernel would not let us write there */
};

/* The loader's counter of objects that it has loaded. Context: calm. */
uint64_t call_sites_adds(void);

/* Asks `rule` about each call site of what was loaded since the loader's counter stood at `adds`,
 * which it moves on, and adds up what was done. Our own are left alone. What was read-only is again
 * after it. An entry that another thread writes meanwhile is left as that wants it. Context: calm,
 * while what is loaded stays, and is relocated: under the loader's lock, or at start. */
void call_sites_bind_new(uint64_t *adds, call_site_rule *rule, struct call_site_counts *counts);

/* The version that the object asks for ("GLIBC_2.2.5"), or NULL. Context: a rule. */
const char *call_site_version(const struct call_site *site);

#endif
