#include "deep_binding.h"

#include "cpu/sampler.h"
#include "kernel/wait.h"
#include "loader_counters.h"
#include "symbols/loader_state.h"
#include "symbols/next_symbol.h"
#include "symbols/object_symbols.h"

#include <link.h>
#include <stddef.h>

enum { LOADER_ROUNDS = 2000 }; /* rounds of wait.h, as in loader_state_visit() */

struct deep_binding deep_binding;

/* --- the definition of a name --- */

static uintptr_t definition_in(const struct link_map *object, const char *name) {
    const ElfW(Sym) *const symbol = object_symbols_entry(object, name);
    return symbol && symbol->st_value ? object->l_addr + symbol->st_value : 0;
}

/* Returns whether only libotelprof and the next definer define the name: then the first call by any
 * library is bound to one of these two. Called under the loader's lock. */
static bool is_defined_once(const char *name, uintptr_t next) {
    const struct link_map *const own = object_symbols_own();
    for (const struct link_map *object = object_symbols_first(); object; object = object->l_next) {
        const uintptr_t found = object == own ? 0 : definition_in(object, name);
        if (found && found != next)
            return false;
    }
    return true;
}

/* Returns the hook that the call site must call; 0: the call site keeps its function. */
static uintptr_t hook_in_place_of(const struct call_site *site) {
    const uintptr_t hook = definition_in(object_symbols_own(), site->name);
    const uintptr_t next = hook ? (uintptr_t)next_symbol(site->name) : 0;
    if (!next)
        return 0;
    return site->value == next || (site->is_unbound && is_defined_once(site->name, next)) ? hook
                                                                                          : 0;
}

/* --- binding --- */

/* Objects that are loaded before the first announced library need no binding here. */
bool deep_binding_expect(void) {
    if (!sampler_is_armed())
        return false;
    if (!atomic_exchange(&deep_binding.used, true)) {
        sampler_choose_unnamed_signal();
        deep_binding.sites.adds = loader_counters_read().adds;
    }
    atomic_store(&deep_binding.sites.expected, true);
    return true;
}

void deep_binding_bind(void) {
    if (call_binding_bind(&deep_binding.sites, hook_in_place_of))
        sampler_check_signal();
}

static bool deep_binding_is_done(void *unused) {
    (void)unused;
    deep_binding_catch_up();
    return !atomic_load(&deep_binding.sites.expected);
}

void deep_binding_bind_before_use(void) {
    /* a thread that has left makes no call of the profiler's: its filter may kill for it */
    if (!sampler_is_armed() || profiler_tls.inside || !loader_state_is_known())
        return;
    /* another thread may have bound, and cleared this, between the announcement and the load */
    atomic_store(&deep_binding.sites.expected, true);
    (void)wait_for_rounds(deep_binding_is_done, NULL, LOADER_ROUNDS);
}

/* --- reporting --- */

void deep_binding_report(const struct log *log) {
    const uint32_t bound = atomic_load(&deep_binding.sites.bound);
    if (bound != deep_binding.logged_bound)
        log_debug(log, "%u calls of libraries that were loaded with RTLD_DEEPBIND lead here so far",
                  bound);
    deep_binding.logged_bound = bound;
    const bool refused = atomic_load(&deep_binding.sites.refused) != 0;
    const bool unknown = atomic_load(&deep_binding.sites.expected) && !loader_state_is_known();
    if ((refused && !deep_binding.logged_refused) || (unknown && !deep_binding.logged_unknown))
        log_debug(log, "a library that was loaded with RTLD_DEEPBIND calls libc past us; threads "
                       "that it creates are not profiled");
    deep_binding.logged_refused |= refused;
    deep_binding.logged_unknown |= unknown;
    if (!deep_binding.logged_namespaces && loader_state_has_namespaces()) {
        log_debug(log, "a library was loaded by dlmopen, with a C library of its own; its "
                       "allocations, and threads that it creates, are not profiled");
        deep_binding.logged_namespaces = true;
    }
}
