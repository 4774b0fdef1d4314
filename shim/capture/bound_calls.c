#include "bound_calls.h"

#include "call_binding.h"
#include "capture.h"
#include "clock.h"
#include "symbols/next_symbol.h"
#include "symbols/object_symbols.h"

#include <string.h>

enum {
    PLACES = 512, /* a power of two, sparsely filled: there are some 130 */
    LOOK_NANO = 20 * 1000 * 1000,
    LOOKS = 50, /* what was expected comes within this time, or is found at the next export */
};

struct bound_call {
    const char *name; /* NULL: a free place */
    uintptr_t hook;
    uintptr_t target; /* what it stands in front of; 0: nothing is bound */
};

static struct {
    bool started;                     /* otherwise nothing is bound */
    struct bound_call places[PLACES]; /* by name */
    uintptr_t lowest;                 /* of all targets */
    uintptr_t highest;
    struct call_binding sites;
    _Atomic uint32_t looks_left;
    uint64_t next_look; /* CLOCK_MONOTONIC, ns. Of the helper, like what follows */
    uint32_t logged_bound;
    bool logged_refused;
} bound_calls;

/* --- by name --- */

static uint32_t hash_name(const char *name) {
    uint32_t hash = 2166136261; /* FNV-1a */
    for (; *name; name++)
        hash = (hash ^ (unsigned char)*name) * 16777619;
    return hash;
}

/* The place of a name, or the one that is free for it. */
static struct bound_call *place_of(const char *name) {
    uint32_t at = hash_name(name) % PLACES;
    while (bound_calls.places[at].name && strcmp(bound_calls.places[at].name, name) != 0)
        at = (at + 1) % PLACES;
    return &bound_calls.places[at];
}

/* --- what is behind a hook --- */

/* Of glibc: libc itself, and before 2.34 libpthread and librt. */
static bool is_of_libc(const struct link_map *object) {
    return object_symbols_defines_version(object, "GLIBC_PRIVATE");
}

/* The first object in the loader's order of search that defines `name`. */
static const struct link_map *definer_of(const char *name) {
    const struct link_map *const own = object_symbols_own();
    const struct link_map *object = object_symbols_first();
    while (object && (object == own || !object_symbols_defines(object, name)))
        object = object->l_next;
    return object;
}

/* The function that entries of this name hold: ours, where we export one; NULL: who defines it is
 * not libc. */
static void *function_of(const char *name) {
    const struct link_map *const definer = definer_of(name);
    struct symbol symbol = {.name = name};
    if (!definer || !is_of_libc(definer))
        return NULL;
    object_symbols_find_all(object_symbols_own(), &symbol, 1);
    object_symbols_find_all(definer, &symbol, 1);
    return symbol.address;
}

/* --- the rule --- */

/* Whether nobody but us and libc defines it: then a first call in any object will find one of the
 * two. */
static bool is_defined_elsewhere(const char *name) {
    const struct link_map *const own = object_symbols_own();
    for (const struct link_map *object = object_symbols_first(); object; object = object->l_next)
        if (object != own && object_symbols_defines(object, name) && !is_of_libc(object))
            return true;
    return false;
}

/* Ours have no version, and answer every one. */
static bool would_be_bound_to(const struct call_site *site, const struct bound_call *call) {
    const struct link_map *const definer = definer_of(call->name);
    const char *const version = call_site_version(site);
    if (is_defined_elsewhere(call->name))
        return false;
    return object_symbols_defines(object_symbols_own(), call->name) ||
           (version &&
            object_symbols_of_version(definer, call->name, version) == (void *)call->target);
}

static uintptr_t hook_of(const struct call_site *site) {
    const bool may_be = site->value >= bound_calls.lowest && site->value <= bound_calls.highest;
    const struct bound_call *const call = may_be || site->is_unbound ? place_of(site->name) : NULL;
    if (!call || !call->target)
        return 0;
    if (site->value == call->target || (site->is_unbound && would_be_bound_to(site, call)))
        return call->hook;
    return 0;
}

/* --- when --- */

void bound_calls_add(const char *name, void *hook, void **next) {
    struct bound_call *const call = place_of(name);
    *next = function_of(name);
    *call = (struct bound_call){name, (uintptr_t)hook, (uintptr_t)*next};
    if (!call->target)
        return;
    if (bound_calls.lowest == 0 || call->target < bound_calls.lowest)
        bound_calls.lowest = call->target;
    if (call->target > bound_calls.highest)
        bound_calls.highest = call->target;
}

void bound_calls_start(void) {
    bound_calls.started = true;
    call_binding_bind_at_start(&bound_calls.sites, hook_of);
}

bool bound_calls_expect(void) {
    if (!bound_calls.started)
        return false;
    atomic_store(&bound_calls.looks_left, LOOKS);
    return true;
}

uint64_t bound_calls_next_look(void) {
    return atomic_load(&bound_calls.looks_left) ? bound_calls.next_look : UINT64_MAX;
}

void bound_calls_look(void) {
    if (monotonic_nano() < bound_calls_next_look())
        return;
    bound_calls.next_look = monotonic_nano() + LOOK_NANO;
    bound_calls_catch_up();
    /* the counter may have been set anew meanwhile: then it is one look less */
    atomic_fetch_sub(&bound_calls.looks_left, 1);
}

void bound_calls_catch_up(void) {
    if (bound_calls.started && call_sites_adds() != bound_calls.sites.adds)
        (void)call_binding_bind(&bound_calls.sites, hook_of);
}

/* --- telling --- */

void bound_calls_report(const struct log *log) {
    const uint32_t bound = atomic_load(&bound_calls.sites.bound);
    const bool refused = atomic_load(&bound_calls.sites.refused) != 0;
    if (bound != bound_calls.logged_bound)
        log_debug(log, "%u addresses of calls that may block lead here so far", bound);
    if (refused && !bound_calls.logged_refused)
        log_debug(log, "some objects' calls that may block cannot be made to lead here; their "
                       "waits are found without");
    bound_calls.logged_bound = bound;
    bound_calls.logged_refused |= refused;
}
