#include "bound_calls.h"

#include "call_binding.h"
#include "clock.h"
#include "loader_counters.h"
#include "opened_page.h"
#include "symbols/object_symbols.h"

#include <string.h>

enum {
    MOST = 300,
    PLACES = 512, /* exceeds MOST, so that each search finds a free place */
    POLL_NANO = 20 * 1000 * 1000,
    /* after an announced load the helper polls so many times; later loads are found at the next
     * export */
    POLLS = 50,
    REST_FACTOR = 50, /* the helper binds for at most one part in so many of the time */
};

struct bound_call {
    void *hook;
    void **next;      /* pointer to the next function, in the hook's table (IN_BOUND_CALLS) */
    uintptr_t target; /* the address that `next` holds; 0: the call is not bound */
    bool is_export;   /* `target` is the profiler's own export */
    bool is_elsewhere;
    const struct link_map *
        /* the object that defines `target`: libc's, or the next definer behind the profiler's
         * export */
        definer;
};

static struct {
    bool started; /* false: no call is bound in this process */
    /* the page of the hooks' tables, writable until bound_calls_start() returns */
    struct opened_page page;
    size_t count;
    struct bound_call calls[MOST];
    struct symbol
        symbols[MOST]; /* by call number: the names, and their definitions when last resolved */
    uint16_t places[PLACES]; /* hash table of names: 1 + the number of a call; 0: free */
    uintptr_t lowest;        /* lowest address of all targets */
    uintptr_t highest;
    bool others_are_known; /* is_elsewhere covers all objects that are loaded now */
    struct call_binding sites;
    _Atomic uint32_t polls_left;
    /* CLOCK_MONOTONIC, ns. Only the helper uses this member and the members after it */
    uint64_t next_poll_ns;
    uint32_t logged_bound;
    bool logged_refused;
} bound_calls;

/* --- by name --- */

static uint32_t hash_name(const char *name) {
    uint32_t hash = 2166136261; /* initial value of FNV-1a */
    for (; *name; name++)
        hash = (hash ^ (unsigned char)*name) * 16777619;
    return hash;
}

/* Returns the hash slot of a name, or a free slot for it. */
static uint16_t *bound_calls_place(const char *name) {
    uint32_t at = hash_name(name) % PLACES;
    while (bound_calls.places[at] &&
           strcmp(bound_calls.symbols[bound_calls.places[at] - 1].name, name) != 0)
        at = (at + 1) % PLACES;
    return &bound_calls.places[at];
}

static const struct bound_call *call_of(const char *name) {
    const uint16_t number = *bound_calls_place(name);
    return number ? &bound_calls.calls[number - 1] : NULL;
}

void bound_calls_add(const char *name, void *hook, void **next) {
    const size_t number = bound_calls.count;
    if (number == MOST)
        return;
    *bound_calls_place(name) = (uint16_t)(number + 1);
    bound_calls.symbols[number] = (struct symbol){.name = name};
    bound_calls.calls[number] = (struct bound_call){.hook = hook, .next = next};
    bound_calls.count++;
}

bool bound_calls_write(void **function, void *address) {
    struct opened_page *const page = &bound_calls.page;
    if (!opened_page_has(page, (uintptr_t)function) &&
        !opened_page_move(page, (uintptr_t)function, true))
        return false;
    *function = address;
    return true;
}

/* --- the next definitions --- */

/* Returns true for glibc's own objects: libc itself, and before 2.34 libpthread and librt. */
static bool is_of_libc(const struct link_map *object) {
    return object_symbols_defines_version(object, "GLIBC_PRIVATE");
}

static void forget_entries(void) {
    for (size_t i = 0; i < bound_calls.count; i++)
        bound_calls.symbols[i].entry = NULL;
}

static void find_target(struct bound_call *call, struct symbol *symbol) {
    call->is_export = symbol->address != NULL;
    if (!call->is_export)
        object_symbols_find_all(call->definer, symbol, 1);
    if (!bound_calls_write(call->next, symbol->address))
        return;
    call->target = (uintptr_t)symbol->address;
    if (bound_calls.lowest == 0 || call->target < bound_calls.lowest)
        bound_calls.lowest = call->target;
    if (call->target > bound_calls.highest)
        bound_calls.highest = call->target;
}

/* Finds the address that a bound entry of each name holds: the profiler's export if it has one,
 * otherwise libc's function. Does not bind a call whose name another object defines first. */
static void find_targets(void) {
    const struct link_map *const own = object_symbols_own();
    const struct link_map *last = NULL;
    bool is_libc = false;
    if (!own) /* the loader's list has no object of ours, so nothing is bound */
        return;
    object_symbols_find_all(own, bound_calls.symbols, bound_calls.count);
    forget_entries();
    /* search each name in the first object that defines it, in the loader's order */
    for (const struct link_map *object = object_symbols_first(); object; object = object->l_next)
        if (object != own)
            object_symbols_find_entries(object, bound_calls.symbols, bound_calls.count);
    for (size_t i = 0; i < bound_calls.count; i++) {
        const struct link_map *const definer =
            bound_calls.symbols[i].entry ? bound_calls.symbols[i].object : NULL;
        if (definer && definer != last)
            is_libc = is_of_libc(definer);
        last = definer ? definer : last;
        if (!definer || !is_libc)
            continue;
        bound_calls.calls[i].definer = definer;
        find_target(&bound_calls.calls[i], &bound_calls.symbols[i]);
    }
}

/* --- the rule --- */

static void find_others(void) {
    const struct link_map *const own = object_symbols_own();
    forget_entries();
    for (const struct link_map *object = object_symbols_first(); object; object = object->l_next)
        if (object != own && !is_of_libc(object))
            object_symbols_find_entries(object, bound_calls.symbols, bound_calls.count);
    for (size_t i = 0; i < bound_calls.count; i++)
        bound_calls.calls[i].is_elsewhere = bound_calls.symbols[i].entry != NULL;
    bound_calls.others_are_known = true;
}

/* Returns true if the first call at an unbound site will be bound to the target: no object other
 * than libc and libotelprof defines the name. The profiler's exports have no version: they match a
 * call site of any version. */
static bool would_be_bound_to(const struct call_site *site, const struct bound_call *call) {
    const char *const version = call_site_version(site);
    if (!bound_calls.others_are_known)
        find_others();
    if (call->is_elsewhere)
        return false;
    return call->is_export ||
           (version &&
            object_symbols_of_version(call->definer, site->name, version) == (void *)call->target);
}

static uintptr_t hook_of(const struct call_site *site) {
    const bool may_be = site->value >= bound_calls.lowest && site->value <= bound_calls.highest;
    const struct bound_call *const call = may_be || site->is_unbound ? call_of(site->name) : NULL;
    if (!call || !call->target)
        return 0;
    if (site->value == call->target || (site->is_unbound && would_be_bound_to(site, call)))
        return (uintptr_t)call->hook;
    return 0;
}

/* --- polling --- */

void bound_calls_start(void) {
    bound_calls.started = true;
    find_targets();
    opened_page_close(&bound_calls.page);
    call_binding_bind_at_start(&bound_calls.sites, hook_of);
}

bool bound_calls_expect(void) {
    if (!bound_calls.started)
        return false;
    return atomic_exchange(&bound_calls.polls_left, POLLS) == 0;
}

uint64_t bound_calls_next_poll(void) {
    return atomic_load(&bound_calls.polls_left) ? bound_calls.next_poll_ns : UINT64_MAX;
}

void bound_calls_poll(void) {
    if (monotonic_nano() < bound_calls_next_poll())
        return;
    const uint64_t start = thread_cpu_nano();
    bound_calls_catch_up();
    const uint64_t rest = (thread_cpu_nano() - start) * REST_FACTOR;
    bound_calls.next_poll_ns = monotonic_nano() + (rest > POLL_NANO ? rest : POLL_NANO);
    /* another thread may have reset the counter meanwhile: the helper then polls once less */
    atomic_fetch_sub(&bound_calls.polls_left, 1);
}

void bound_calls_catch_up(void) {
    if (!bound_calls.started || loader_counters_read().adds == bound_calls.sites.adds)
        return;
    bound_calls.others_are_known = false;
    (void)call_binding_bind(&bound_calls.sites, hook_of);
}

/* --- reporting --- */

void bound_calls_report(const struct log *log) {
    const uint32_t bound = atomic_load(&bound_calls.sites.bound);
    const bool refused = atomic_load(&bound_calls.sites.refused) != 0;
    if (bound != bound_calls.logged_bound)
        log_debug(log, "redirected %u call sites of blocking functions so far", bound);
    if (refused && !bound_calls.logged_refused)
        log_debug(log, "some objects' calls that may block cannot be made to lead here; their "
                       "waits are found without");
    bound_calls.logged_bound = bound;
    bound_calls.logged_refused |= refused;
}
