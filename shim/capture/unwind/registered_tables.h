/* Keeps the unwind tables of code that is in no object, which JIT compilers register
 * (__register_frame).
 *
 * A registration is copied. So the compiler can free its memory without waiting for readers, and a
 * compiler that forgets to deregister does no harm. A copy has the functions, sorted, and the call
 * frame instructions of each. A reader finds the copy by a hash of the pages that its code lies in;
 * a registration of many pages is listed under larger pages, so that it is in few lists. Readers
 * take no lock and see each list as it was before or after a change; they are counted, and a
 * removed copy is reused once there was no reader. Rules of such code are cached as those of
 * objects are. When code is deregistered, the cache forgets the rules of its address range, but
 * only if one of its rules was cached: so programs that compile and drop code all the time
 * (PostgreSQL) pay nothing for that. A forked child keeps all registrations. No memory is used
 * before the first registration.
 */
#ifndef OTELPROF_REGISTERED_TABLES_H
#define OTELPROF_REGISTERED_TABLES_H

#include "modules.h"
#include "rule_cache.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* bounds the registrations at a time; Julia makes thousands */
enum { REGISTERED_MOST = 1 << 16 };

struct registered_index;

/* Holds the tables in ordinary memory, which a forked child keeps. Initially all zero. */
struct registered_tables {
    _Atomic(struct registered_index *) index; /* NULL: no table was ever registered */
    _Atomic bool busy;                        /* a thread is changing the index */
    _Atomic bool is_off;                      /* the index cannot be trusted any more, for ever */
    /* number of threads that are finding or using a function */
    _Atomic uint32_t readers;
    /* number of registrations that found no room, or did not get the lock in time */
    _Atomic uint32_t refused;
};

/* Records that `begin` was registered; registered_section.h explains `begin` and `data_base`. Code
 * in `modules` is skipped, because objects have tables of their own. An earlier registration of the
 * same address is replaced. A registration that finds no room or no lock counts in `refused`. Cost:
 * about 1 µs, and 0.1 µs for each function. Context: calm. errno is preserved. */
void registered_tables_add(struct registered_tables *tables, struct rule_cache *rules,
                           const struct modules *modules, uintptr_t begin, uintptr_t data_base);

/* Removes a registration that was deregistered, or is about to be: when this function returns, the
 * caller may unmap the code. Cost: 0.1 µs; 10 µs if one of its rules was cached. Context: calm.
 * errno is preserved. */
void registered_tables_remove(struct registered_tables *tables, struct rule_cache *rules,
                              uintptr_t begin);

/* Take and release the lock around fork(), so that a child does not inherit a change that another
 * thread has begun. If registered_tables_begin_fork() returns true, the parent must call
 * registered_tables_end_fork(). Context: calm. */
bool registered_tables_begin_fork(struct registered_tables *tables);
void registered_tables_end_fork(struct registered_tables *tables);

/* Resets the tables in a forked child. `is_whole`: the result of registered_tables_begin_fork().
 * Context: fork handler.
 */
void registered_tables_after_fork(struct registered_tables *tables, bool is_whole);

/* Finds the rule for `pc`, which no object spans. Caches the rule under `key` if `generation`,
 * which the caller has read before, is still current. Returns false if no table was registered for
 * `pc`. A rule that is not expressible is RULE_NONE: libunwind has no tables for such code either.
 * Cost: 0.1 to 1 µs; none if no table was ever registered. Context: any. Async-signal-safe: yes. */
bool registered_tables_rule(struct registered_tables *tables, struct rule_cache *rules,
                            uint64_t generation, struct rule_key key, uintptr_t pc,
                            struct rule *rule);

/* Returns true if code with registered tables is near `pc`, within some 128 KiB. Then code without
 * tables at `pc` comes from the same compiler (LLVM's functions that cannot throw), and keeps no
 * frame pointers. Context: any. Async-signal-safe: yes. */
bool registered_tables_are_near(const struct registered_tables *tables, uintptr_t pc);

/* Returns the number of registrations. Context: any. */
uint32_t registered_tables_count(const struct registered_tables *tables);

#endif
