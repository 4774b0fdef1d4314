/* Unwind tables of code that is in no object: what JIT compilers register (__register_frame).
 *
 * A registration is copied: the compiler's memory is not read later, so the compiler can free it
 * without waiting for readers, and one that forgets to deregister does no harm. A copy has the
 * functions sorted, and the call frame instructions of each. It is found by a hash of the pages
 * that its code lies in; a registration of many pages is listed under larger ones, so that none is
 * listed often. Readers take no lock and see each list as it was before or after a change; they are
 * counted, and what was taken out is used again when there was none. Rules of such code are cached
 * as those of objects are. Where code goes, the cache forgets the addresses between its first and
 * its last: but only if a rule of it was cached, so programs that compile and drop code all the
 * time (PostgreSQL) pay nothing. A forked child keeps it all. There is no memory before the first
 * registration.
 */
#ifndef OTELPROF_REGISTERED_TABLES_H
#define OTELPROF_REGISTERED_TABLES_H

#include "modules.h"
#include "rule_cache.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { REGISTERED_MOST = 1 << 16 }; /* registrations at a time; Julia makes thousands */

struct registered_index;

/* In ordinary memory, which a forked child has. All zero at first. */
struct registered_tables {
    _Atomic(struct registered_index *) index; /* NULL: nothing was ever registered */
    _Atomic bool busy;                        /* a thread is changing it */
    _Atomic bool is_off;                      /* for good: it cannot be trusted */
    _Atomic uint32_t readers;                 /* between finding a function and using it */
    _Atomic uint32_t refused;                 /* registrations that were not taken: no room */
};

/* Records that `begin` was registered; registered_section.h explains `begin` and `data_base`. Code
 * of `modules` is skipped: those have tables of their own. An earlier registration of the same
 * address is replaced. Cost: about 1 µs, and 0.1 µs for each function. Context: calm. errno is
 * preserved. */
void registered_tables_add(struct registered_tables *tables, struct rule_cache *rules,
                           const struct modules *modules, uintptr_t begin, uintptr_t data_base);

/* Removes a registration that was deregistered, or is about to be: its code may go when this
 * returns. Cost: 0.1 µs; 10 µs if a rule of it was cached. Context: calm. errno is preserved. */
void registered_tables_remove(struct registered_tables *tables, struct rule_cache *rules,
                              uintptr_t begin);

/* Called around fork(): a child must not inherit a change that another thread has begun. If it
 * returns true, the parent must call registered_tables_end_fork(). Context: calm. */
bool registered_tables_begin_fork(struct registered_tables *tables);
void registered_tables_end_fork(struct registered_tables *tables);

/* Resets the tables in a forked child. `is_whole`: the result of registered_tables_begin_fork().
 * Context: fork handler.
 */
void registered_tables_after_fork(struct registered_tables *tables, bool is_whole);

/* Finds the rule for `pc`, which no object spans. Caches it under `key` if `generation`, which the
 * caller has read before, is still current. Returns false if no table was registered for `pc`. A
 * rule that is not expressible is RULE_NONE: libunwind has no tables for such code either. Cost:
 * 0.1 to 1 µs; nothing if nothing was ever registered. Context: any. Async-signal-safe: yes. */
bool registered_tables_rule(struct registered_tables *tables, struct rule_cache *rules,
                            uint64_t generation, struct rule_key key, uintptr_t pc,
                            struct rule *rule);

/* Returns true if a compiler that registers tables made code near `pc`, within 128 KiB or a little
 * more: code there without tables keeps no frame pointers either (functions of LLVM's that cannot
 * throw). Context: any. Async-signal-safe: yes. */
bool registered_tables_are_near(const struct registered_tables *tables, uintptr_t pc);

/* Returns the number of registrations. Context: any. */
uint32_t registered_tables_count(const struct registered_tables *tables);

#endif
