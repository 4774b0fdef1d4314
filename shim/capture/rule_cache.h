/* The rules that this process needed so far: a direct-mapped, lock-free cache from pc to rule.
 *
 * An entry is two words, written without a lock by whichever thread computed the rule: the rule,
 * and the pc mixed with the rule and the load generation. A reader that meets a torn pair, or a
 * pair from before a library was unloaded, computes another pc and takes it for a miss (the
 * "lockless transposition table" idea of Hyatt and Mann, 2002). Rules of one pc never change while
 * its module is loaded, so whatever passes the check is right.
 * Memory: 128 KiB, touched as it fills.
 */
#ifndef OTELPROF_RULE_CACHE_H
#define OTELPROF_RULE_CACHE_H

#include "cfi.h"
#include "hash.h"

#include <stdatomic.h>
#include <string.h>

enum { RULE_CACHE_ENTRIES = 8192 };

struct rule_cache_entry {
    _Atomic uint64_t check;
    _Atomic uint64_t rule;
};

struct rule_cache {
    _Atomic uint64_t generation; /* see rule_cache_invalidate() */
    struct rule_cache_entry entries[RULE_CACHE_ENTRIES];
};

static inline struct rule_cache_entry *rule_cache_entry(struct rule_cache *cache, uintptr_t pc) {
    return &cache->entries[(pc ^ (pc >> 13)) % RULE_CACHE_ENTRIES];
}

/* Cost: about 1 ns. Context: any. Async-signal-safe: yes. */
static inline bool rule_cache_lookup(struct rule_cache *cache, uintptr_t pc, struct rule *rule) {
    struct rule_cache_entry *const entry = rule_cache_entry(cache, pc);
    const uint64_t word = atomic_load_explicit(&entry->rule, memory_order_relaxed);
    const uint64_t check = atomic_load_explicit(&entry->check, memory_order_relaxed);
    const uint64_t generation = atomic_load_explicit(&cache->generation, memory_order_relaxed);
    if ((check ^ word ^ generation) != pc)
        return false;
    memcpy(rule, &word, sizeof word);
    return true;
}

/* Context: any. Async-signal-safe: yes. */
static inline void rule_cache_store(struct rule_cache *cache, uintptr_t pc, struct rule rule) {
    struct rule_cache_entry *const entry = rule_cache_entry(cache, pc);
    const uint64_t generation = atomic_load_explicit(&cache->generation, memory_order_relaxed);
    uint64_t word;
    memcpy(&word, &rule, sizeof word);
    atomic_store_explicit(&entry->rule, word, memory_order_relaxed);
    atomic_store_explicit(&entry->check, pc ^ word ^ generation, memory_order_relaxed);
}

/* Forgets every rule, because an address may now belong to another library. Call before and after
 * unloading. Context: any. Async-signal-safe: yes. */
static inline void rule_cache_invalidate(struct rule_cache *cache) {
    /* high bits, which no user-space pc has, tell the generations apart */
    atomic_fetch_add_explicit(&cache->generation, UINT64_C(1) << 48, memory_order_seq_cst);
}

#endif
