#include "registered_tables.h"

#include "kernel/profiler_memory.h"
#include "kernel/wait.h"
#include "registration.h"
#include "return_address.h"

enum {
    BUCKET_BITS = 12,
    BUCKETS = 1 << BUCKET_BITS,
    STEPS_MOST = 512,   /* number of entries searched in one list; later ones are not found */
    LOCK_ROUNDS = 2000, /* waits for the lock last so many rounds of wait.h */
    LARGEST_PAGE = 1 << 16,
    REGION_SHIFT = 18, /* log2 of the size of regions that count as near: 256 KiB */
};

struct registered_index {
    _Atomic(struct registered_place *) places[BUCKETS]; /* lists of registrations, by page */
    _Atomic uint32_t levels[REGISTERED_LEVELS];         /* number of registrations of each level */
    /* number of registrations that begin or end in the region */
    _Atomic uint32_t regions[BUCKETS];
    /* lists of registrations by `begin`; this field and the following ones are used under `busy` */
    struct registration *begins[BUCKETS];
    /* removed registrations that a reader may still use */
    struct registration *removed;
    struct table_blocks blocks;
    _Atomic uint32_t count;
};

/* --- changes --- */

/* Pairs with the release in registered_tables_unlock(). */
static bool registered_tables_try_lock(void *tables) {
    return !atomic_exchange_explicit(&((struct registered_tables *)tables)->busy, true,
                                     memory_order_acquire);
}

/* Takes the lock, or gives up after a short wait, because a handler that has interrupted the lock's
 * holder may call this function. */
static bool registered_tables_lock_soon(struct registered_tables *tables) {
    return wait_for_rounds(registered_tables_try_lock, tables, LOCK_ROUNDS);
}

static void registered_tables_unlock(struct registered_tables *tables) {
    /* pairs with the acquire in registered_tables_try_lock() */
    atomic_store_explicit(&tables->busy, false, memory_order_release);
}

static struct registered_index *index_of(const struct registered_tables *tables) {
    if (atomic_load_explicit(&tables->is_off, memory_order_relaxed))
        return NULL;
    /* pairs with the release in make_index() */
    return atomic_load_explicit(&tables->index, memory_order_acquire);
}

static struct registered_index *make_index(struct registered_tables *tables) {
    struct registered_index *index = index_of(tables);
    if (index || atomic_load_explicit(&tables->is_off, memory_order_relaxed))
        return index;
    index = profiler_memory_take((sizeof *index + LARGEST_PAGE - 1) & -(size_t)LARGEST_PAGE);
    /* pairs with the acquire in index_of() */
    atomic_store_explicit(&tables->index, index, memory_order_release);
    return index;
}

static unsigned address_bucket(uintptr_t value) {
    /* multiplies by 2^64 / phi (Fibonacci hashing) */
    return (unsigned)(value * UINT64_C(0x9e3779b97f4a7c15) >> (64 - BUCKET_BITS));
}

/* --- nearness --- */

static uintptr_t registration_end(const struct registration *r) {
    const struct registered_function *const last = &r->functions[r->function_count - 1];
    return last->start + last->size;
}

static _Atomic uint32_t *region_of(struct registered_index *index, uintptr_t address) {
    return &index->regions[address_bucket(address >> REGION_SHIFT)];
}

static void count_regions(struct registered_index *index, const struct registration *r,
                          uint32_t change) {
    atomic_fetch_add_explicit(region_of(index, r->functions[0].start), change,
                              memory_order_relaxed);
    atomic_fetch_add_explicit(region_of(index, registration_end(r)), change, memory_order_relaxed);
}

bool registered_tables_are_near(const struct registered_tables *tables, uintptr_t pc) {
    enum { HALF_A_REGION = 1 << (REGION_SHIFT - 1) };
    struct registered_index *const index = index_of(tables);
    return index &&
           (atomic_load_explicit(region_of(index, pc - HALF_A_REGION), memory_order_relaxed) != 0 ||
            atomic_load_explicit(region_of(index, pc + HALF_A_REGION), memory_order_relaxed) != 0);
}

/* --- the index --- */

static void registered_tables_publish(struct registered_index *index, struct registration *r) {
    struct registration **const begin = &index->begins[address_bucket(r->begin)];
    r->next = *begin;
    *begin = r;
    atomic_fetch_add_explicit(&index->count, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&index->levels[r->level], 1, memory_order_relaxed);
    count_regions(index, r, 1);
    for (uint32_t i = 0; i < r->place_count; i++) {
        struct registered_place *const place = &r->places[i];
        _Atomic(struct registered_place *) *const bucket =
            &index->places[address_bucket(place->page)];
        place->registration = r;
        atomic_store_explicit(&place->next, atomic_load(bucket), memory_order_relaxed);
        atomic_store(bucket, place); /* pairs with the load in find_on_page() */
    }
}

static void registered_tables_unlist(struct registered_index *index,
                                     struct registered_place *place) {
    _Atomic(struct registered_place *) *link = &index->places[address_bucket(place->page)];
    for (struct registered_place *at = atomic_load(link); at; at = atomic_load(link)) {
        if (at == place) {
            atomic_store(link, atomic_load(&place->next));
            return;
        }
        link = &at->next;
    }
}

/* Frees removed registrations once no reader can use them. */
static void reuse_removed(struct registered_tables *tables, struct registered_index *index) {
    /* pairs with the addition in registered_tables_rule(), where a reader counts itself and then
     * reads the lists */
    if (!index->removed || atomic_load(&tables->readers) != 0)
        return;
    while (index->removed) {
        struct registration *const r = index->removed;
        index->removed = r->next;
        table_blocks_give(&index->blocks, r, r->size);
    }
}

static void remove_at(struct registered_index *index, struct rule_cache *rules,
                      struct registration **link) {
    struct registration *const r = *link;
    *link = r->next;
    for (uint32_t i = 0; i < r->place_count; i++)
        registered_tables_unlist(index, &r->places[i]);
    atomic_fetch_sub_explicit(&index->count, 1, memory_order_relaxed);
    atomic_fetch_sub_explicit(&index->levels[r->level], 1, memory_order_relaxed);
    count_regions(index, r, -1u);
    /* pairs with keep_rule(): either that function sees the mark, or this thread sees the rule that
     * it keeps */
    atomic_store(&r->is_removed, true);
    atomic_thread_fence(memory_order_seq_cst);
    if (atomic_load(&r->is_cached))
        rule_cache_forget(rules, r->functions[0].start, registration_end(r));
    r->next = index->removed;
    index->removed = r;
}

static struct registration **find_begin(struct registered_index *index, uintptr_t begin) {
    struct registration **link = &index->begins[address_bucket(begin)];
    while (*link && (*link)->begin != begin)
        link = &(*link)->next;
    return link;
}

static void remove_begin(struct registered_index *index, struct rule_cache *rules,
                         uintptr_t begin) {
    struct registration **const link = find_begin(index, begin);
    if (*link)
        remove_at(index, rules, link);
}

/* --- registering --- */

/* Adds a registration. Returns false if there is no room. */
static bool add_locked(struct registered_tables *tables, struct registered_index *index,
                       const struct registered_section *section,
                       const struct registration *counts) {
    if (atomic_load(&index->count) >= REGISTERED_MOST)
        return false;
    reuse_removed(tables, index);
    struct registration *const r = registration_copy(&index->blocks, section, counts);
    if (r)
        registered_tables_publish(index, r);
    return r != NULL;
}

void registered_tables_add(struct registered_tables *tables, struct rule_cache *rules,
                           const struct modules *modules, uintptr_t begin, uintptr_t data_base) {
    const struct registered_section section = registered_section_at(begin, data_base);
    struct registration counts = {.begin = begin};
    uintptr_t first;
    const bool describes =
        registration_measure(section, &counts, &first) && !modules_span(modules, first);
    if (!registered_tables_lock_soon(tables)) {
        atomic_fetch_add(&tables->refused, 1);
        return;
    }
    struct registered_index *const known = index_of(tables);
    if (known && *find_begin(known, begin))
        remove_begin(known, rules, begin);
    struct registered_index *const index = describes ? make_index(tables) : NULL;
    if (describes && (!index || !add_locked(tables, index, &section, &counts)))
        atomic_fetch_add(&tables->refused, 1);
    registered_tables_unlock(tables);
}

void registered_tables_remove(struct registered_tables *tables, struct rule_cache *rules,
                              uintptr_t begin) {
    struct registered_index *const index = index_of(tables);
    if (!index)
        return;
    if (!registered_tables_lock_soon(tables)) {
        /* the registration cannot be unlinked, and its readers cannot be waited for, so all lookups
         * stop */
        atomic_store(&tables->is_off, true);
        rule_cache_invalidate(rules);
        return;
    }
    reuse_removed(tables, index);
    remove_begin(index, rules, begin);
    registered_tables_unlock(tables);
}

uint32_t registered_tables_count(const struct registered_tables *tables) {
    struct registered_index *const index = index_of(tables);
    return index ? atomic_load_explicit(&index->count, memory_order_relaxed) : 0;
}

/* --- fork --- */

bool registered_tables_begin_fork(struct registered_tables *tables) {
    return index_of(tables) && registered_tables_lock_soon(tables);
}

void registered_tables_end_fork(struct registered_tables *tables) {
    registered_tables_unlock(tables);
}

void registered_tables_after_fork(struct registered_tables *tables, bool is_whole) {
    if (!index_of(tables))
        return;
    if (!is_whole)
        atomic_store(&tables->is_off, true);
    atomic_store(&tables->readers, 0);
    registered_tables_unlock(tables);
}

/* --- lookup --- */

/* Returns the function around `pc`, and its registration, from the list of one page, newest first.
 * NULL: none of the first STEPS_MOST entries has it. */
static const struct registered_function *find_on_page(struct registered_index *index,
                                                      unsigned level, uintptr_t pc,
                                                      struct registration **found) {
    const uintptr_t page = registered_page(pc, level);
    const struct registered_place *place = atomic_load(&index->places[address_bucket(page)]);
    for (unsigned steps = 0; place && steps < STEPS_MOST; steps++) {
        const struct registered_function *const f =
            place->page == page ? registration_function_at(place->registration, pc) : NULL;
        if (f) {
            *found = place->registration;
            return f;
        }
        /* pairs with the store in registered_tables_unlist(); a place that was published before the
         * first place of the list is seen with that first place */
        place = atomic_load_explicit(&place->next, memory_order_acquire);
    }
    return NULL;
}

static const struct registered_function *
registered_tables_find(struct registered_index *index, uintptr_t pc, struct registration **found) {
    const struct registered_function *f = NULL;
    for (unsigned level = 0; level < REGISTERED_LEVELS && !f; level++)
        if (atomic_load_explicit(&index->levels[level], memory_order_relaxed))
            f = find_on_page(index, level, pc, found);
    return f;
}

static void keep_rule(struct registration *r, struct rule_cache *rules, uint64_t generation,
                      struct rule_key key, struct rule rule) {
    atomic_store_explicit(&r->is_cached, true, memory_order_relaxed);
    rule_cache_store(rules, generation, key, rule);
    /* pairs with remove_at() */
    atomic_thread_fence(memory_order_seq_cst);
    if (atomic_load(&r->is_removed))
        rule_cache_forget(rules, key.address, key.address);
}

bool registered_tables_rule(struct registered_tables *tables, struct rule_cache *rules,
                            uint64_t generation, struct rule_key key, uintptr_t pc,
                            struct rule *rule) {
    struct registration *r;
    struct registered_index *const index = index_of(tables);
    if (!index)
        return false;
    atomic_fetch_add(&tables->readers, 1); /* pairs with reuse_removed() */
    const struct registered_function *const f = registered_tables_find(index, pc, &r);
    if (f) {
        *rule = registration_rule(r, f, pc);
        rule->after_call = return_address_follows_generated_call(pc + 1);
        keep_rule(r, rules, generation, key, *rule);
    }
    atomic_fetch_sub_explicit(&tables->readers, 1, memory_order_release);
    return f != NULL;
}
