/* Caches the rules that this process has needed: a direct-mapped, lock-free cache from pc to rule.
 *
 * An entry is one 64-bit word, so that no reader can ever see half of one: the rule, packed into
 * its low bits, and above it the bits of the pc that the entry's index does not imply, with a
 * generation that changes when a library is unloaded. Rules of one pc never change while its module
 * is loaded, so an entry with the right tag is right. The walker must decode a word before it can
 * continue, so decoding takes few cycles: one mask gives the distance to the canonical frame
 * address, and the low bits of the pc are the index. Memory: 128 KiB, touched as it fills.
 *
 * A word has room for four bits of the generation, so 15 generations are followed by a pause: in
 * the generation of the sixteenth value no rule matches and none is stored. The pause ends when the
 * cache has been emptied, and the cache is emptied only at an instant at which no thread stores. So
 * a rule of an earlier round cannot appear in a later one, however long its writer was preempted:
 * the writer first counts itself in `writers`, and then checks that its generation is still the
 * present one. A writer stays counted for ever if a handler of the program leaves the store by a
 * jump: only the handler of a signal that signals_block() leaves unblocked (SIGSEGV, sent by
 * kill()) can. Then the next pause lasts, and walks compute each rule.
 */
#ifndef OTELPROF_RULE_CACHE_H
#define OTELPROF_RULE_CACHE_H

#include "arch_memory.h"
#include "cfi.h"

#include <stdatomic.h>

enum {
    RULE_SLOT_BITS = 9, /* log2 of the words of one page: 512 */
    RULE_PAGE_BITS = 5,
    RULE_PAGE_SHIFT = 14, /* log2 of the bytes of code whose rules share a page: 16 KiB */
    RULE_CACHE_ENTRIES = 1 << (RULE_SLOT_BITS + RULE_PAGE_BITS),
};

/* Lists the bits of an entry. Offsets are multiples of 8, so the low three bits of the CFA's offset
 * are free for other fields. */
enum {
    PACKED_AFTER_CALL = 1,     /* bit 0 */
    PACKED_FP_SHIFT = 1,       /* bits 1 and 2: fp_kind */
    PACKED_CFA_MASK = 0x1fff8, /* bits 3 to 16: cfa_offset, two's complement */
    PACKED_CFA_SIGN = 0x10000, /* the sign bit of cfa_offset */
    PACKED_OFFSET_SHIFT = 17,  /* bits 17 to 21: -fp_offset / 8 */
    PACKED_AT_BASE = 31,       /* in their place, with a link register: see packed_fp_offset() */
    PACKED_KIND_SHIFT = 22,    /* bits 22 to 25: cfa_kind; 0 (RULE_NONE) is possible */
    /* on an architecture with a link register, bit 26: the return address is saved */
    PACKED_RETURN_SHIFT = 26,
    /* one bit: set for the rule of a leaf, see struct rule_key */
    PACKED_LEAF_SHIFT = 26 + !ARCH_PUSHED_RETURN,
    PACKED_TAG_SHIFT = PACKED_LEAF_SHIFT + 1, /* at most 33 bits of the pc */
    PACKED_GENERATION_SHIFT = 60,             /* 4 bits of the generation */
};

enum {
    RULE_GENERATIONS = 16, /* as many as the bits above can distinguish */
    RULE_PAUSE = 15,       /* the generation modulo RULE_GENERATIONS that has no rules */
};
/* A bit of `writers`: a thread empties the cache. The other bits count threads that store. */
#define RULE_EMPTYING (UINT32_C(1) << 31)

_Static_assert(ARCH_ADDRESS_BITS - ARCH_CODE_SHIFT - RULE_SLOT_BITS - RULE_PAGE_BITS <=
                   PACKED_GENERATION_SHIFT - PACKED_TAG_SHIFT,
               "a word and its place distinguish each address");

/* Identifies a rule by a leaf's pc, or by a caller's return address. A caller's rule is the rule of
 * the pc one byte before the return address. Subtracting that byte first would cost a cycle for
 * each frame; instead a bit distinguishes the two keys. */
struct rule_key {
    uintptr_t address;
    bool leaf;
};

/* Holds the cache. The owner places it at the start of a page, so that rules of one page of code
 * cause one page fault. Data after the cache shares the page of the generation. */
struct rule_cache {
    _Atomic uint64_t entries[RULE_CACHE_ENTRIES];
    _Atomic uint64_t generation; /* number of invalidations so far */
    /* a bit for each page of `entries` that had a rule stored in it since it was last emptied */
    _Atomic uint32_t used;
    _Atomic uint32_t writers; /* threads that store a rule now, and RULE_EMPTYING */
};
_Static_assert(RULE_PAGE_BITS == 5, "one bit of `used` for each page");

static inline uintptr_t rule_place(uintptr_t address) {
    address >>= ARCH_CODE_SHIFT;
    const uintptr_t slot = address & ((1 << RULE_SLOT_BITS) - 1);
    const uintptr_t page = address >> (RULE_PAGE_SHIFT - RULE_SLOT_BITS) &
                           (((1 << RULE_PAGE_BITS) - 1) << RULE_SLOT_BITS);
    return page | slot;
}

/* Returns the bits of the key that its index does not imply. */
static inline uint64_t rule_tag(uint64_t generation, struct rule_key key) {
    const uintptr_t address = key.address >> ARCH_CODE_SHIFT;
    const uint64_t between =
        address >> RULE_SLOT_BITS & ((1 << (RULE_PAGE_SHIFT - RULE_SLOT_BITS)) - 1);
    const uint64_t above = address >> (RULE_PAGE_SHIFT + RULE_PAGE_BITS);
    return generation << PACKED_GENERATION_SHIFT |
           (above << (RULE_PAGE_SHIFT - RULE_SLOT_BITS) | between) << PACKED_TAG_SHIFT |
           (uint64_t)key.leaf << PACKED_LEAF_SHIFT;
}

/* Returns the word at the key's index. The word may belong to another key: check with
 * rule_word_is_for(). Cost: about 1 ns. Context: any. Async-signal-safe: yes. */
static inline uint64_t rule_cache_word(const struct rule_cache *cache, struct rule_key key) {
    return atomic_load_explicit(&cache->entries[rule_place(key.address)], memory_order_relaxed);
}

/* Returns true if the word, which must not be 0, holds the key's rule. */
static inline bool rule_word_has_tag(uint64_t word, uint64_t generation, struct rule_key key) {
    return (word ^ rule_tag(generation, key)) >> PACKED_LEAF_SHIFT == 0;
}

/* Returns true if the word holds the key's rule. 0 is an empty entry: only an address in the first
 * pages, where no code is mapped, could have such a tag. */
static inline bool rule_word_is_for(uint64_t word, uint64_t generation, struct rule_key key) {
    return rule_word_has_tag(word, generation, key) && word != 0;
}

static inline uint64_t rule_cache_generation(const struct rule_cache *cache) {
    /* pairs with the store in rule_cache_end_pause(): the words of former rounds are gone */
    return atomic_load_explicit(&cache->generation, memory_order_acquire);
}

static inline int64_t packed_cfa_offset(uint64_t word) {
    return (int64_t)((word & PACKED_CFA_MASK) ^ PACKED_CFA_SIGN) - PACKED_CFA_SIGN;
}

/* Returns the place of the saved frame pointer, from the CFA. On an architecture with a link
 * register most frames have their record at their lower end, from which the CFA is counted:
 * PACKED_AT_BASE. */
static inline int64_t packed_fp_offset(uint64_t word) {
    const int64_t words = (int64_t)(word >> PACKED_OFFSET_SHIFT & 31);
    return !ARCH_PUSHED_RETURN && words == PACKED_AT_BASE ? -packed_cfa_offset(word) : -words * 8;
}

/* Returns rule_return_offset() of a packed rule. A saved link register lies above the saved frame
 * pointer (a frame record). If the link register is saved alone, the word has the offset of the
 * place below as the frame pointer's offset. */
static inline int64_t packed_return_offset(uint64_t word) {
    if (ARCH_PUSHED_RETURN)
        return ARCH_PUSHED_RETURN;
    return word >> PACKED_RETURN_SHIFT & 1 ? packed_fp_offset(word) + 8 : 0;
}

static inline bool packed_place_is_of_return(struct rule rule) {
    return !ARCH_PUSHED_RETURN && rule.fp_kind == FP_SAME && rule.return_offset;
}

static inline struct rule rule_unpack(uint64_t word) {
    struct rule rule = {.cfa_offset = (int32_t)packed_cfa_offset(word),
                        .fp_offset = (int32_t)packed_fp_offset(word),
                        .cfa_kind = (word >> PACKED_KIND_SHIFT) & 15,
                        .fp_kind = (word >> PACKED_FP_SHIFT) & 3,
                        .after_call = word & PACKED_AFTER_CALL};
    if (!ARCH_PUSHED_RETURN)
        rule.return_offset = (int32_t)packed_return_offset(word);
    if (packed_place_is_of_return(rule))
        rule.fp_offset = 0;
    return rule;
}

static inline uint64_t rule_pack(struct rule rule) {
    const int place = packed_place_is_of_return(rule) ? rule.return_offset - 8 : rule.fp_offset;
    const bool is_at_base = !ARCH_PUSHED_RETURN && place == -rule.cfa_offset && place != 0;
    const uint64_t words = is_at_base ? PACKED_AT_BASE : (uint64_t)(-place / 8) & 31;
    return (uint64_t)rule.after_call | (uint64_t)rule.fp_kind << PACKED_FP_SHIFT |
           ((uint64_t)(int64_t)rule.cfa_offset & PACKED_CFA_MASK) | words << PACKED_OFFSET_SHIFT |
           (ARCH_PUSHED_RETURN ? 0 : (uint64_t)(rule.return_offset != 0) << PACKED_RETURN_SHIFT) |
           (uint64_t)rule.cfa_kind << PACKED_KIND_SHIFT;
}

static inline bool rule_equal(struct rule a, struct rule b) {
    return a.cfa_offset == b.cfa_offset && a.fp_offset == b.fp_offset && a.cfa_kind == b.cfa_kind &&
           a.fp_kind == b.fp_kind && a.return_offset == b.return_offset &&
           a.after_call == b.after_call;
}

static inline bool rule_generation_is_pause(uint64_t generation) {
    return generation % RULE_GENERATIONS == RULE_PAUSE;
}

/* Ends the pause `pause` if no thread stores or empties: forgets every rule, and begins the next
 * generation. Otherwise does nothing, and the next store or invalidation tries again. */
static inline void rule_cache_end_pause(struct rule_cache *cache, uint64_t pause) {
    uint32_t no_writer = 0;
    /* pairs with rule_cache_end_store(): the words and bits of all former stores are seen. Pairs
     * with rule_cache_begin_store(): a later writer sees the pause, or the next generation */
    if (!atomic_compare_exchange_strong(&cache->writers, &no_writer, RULE_EMPTYING))
        return;
    if (rule_cache_generation(cache) == pause) { /* no other thread has ended the pause before */
        const uint32_t used = atomic_exchange_explicit(&cache->used, 0, memory_order_relaxed);
        for (unsigned page = 0; page < 1 << RULE_PAGE_BITS; page++)
            for (unsigned slot = 0; used >> page & 1 && slot < 1 << RULE_SLOT_BITS; slot++)
                atomic_store_explicit(&cache->entries[page << RULE_SLOT_BITS | slot], 0,
                                      memory_order_relaxed);
        /* pairs with the acquire in rule_cache_generation(): a reader finds no former word */
        atomic_store(&cache->generation, pause + 1);
    }
    atomic_fetch_and(&cache->writers, ~RULE_EMPTYING);
}

/* Begins a store of a rule that was computed in the generation `generation`. Returns false if the
 * cache is being emptied, or if the rule is too late: its address may belong to another library by
 * now. rule_cache_end_store() must follow in all cases. */
static inline bool rule_cache_begin_store(struct rule_cache *cache, uint64_t generation) {
    /* pairs with the compare-and-swap in rule_cache_end_pause(), which fails from here on */
    return !(atomic_fetch_add(&cache->writers, 1) & RULE_EMPTYING) &&
           atomic_load(&cache->generation) == generation;
}

static inline void rule_cache_end_store(struct rule_cache *cache) {
    atomic_fetch_sub(&cache->writers, 1); /* pairs with rule_cache_end_pause() */
}

/* Stores the rule, unless the generation has changed, or the rule does not fit into a word: the
 * frame is larger than 64 KiB, or saves the frame pointer more than 248 bytes below its CFA. In a
 * pause tries to end the pause instead. `generation` was read before the rule was computed.
 * Context: any. Async-signal-safe: yes. */
static inline void rule_cache_store(struct rule_cache *cache, uint64_t generation,
                                    struct rule_key key, struct rule rule) {
    const uintptr_t place = rule_place(key.address);
    const uint64_t word = rule_pack(rule);
    if (!rule_equal(rule_unpack(word), rule))
        return;
    if (rule_generation_is_pause(generation)) {
        rule_cache_end_pause(cache, generation);
        return;
    }
    if (rule_cache_begin_store(cache, generation)) {
        atomic_store_explicit(&cache->entries[place], word | rule_tag(generation, key),
                              memory_order_relaxed);
        atomic_fetch_or_explicit(&cache->used, UINT32_C(1) << (place >> RULE_SLOT_BITS),
                                 memory_order_relaxed);
    }
    rule_cache_end_store(cache);
}

/* Returns the address that the word at `place` belongs to. */
static inline uintptr_t rule_word_address(uint64_t word, uintptr_t place) {
    const uint64_t generation = word & ~UINT64_C(0) << PACKED_GENERATION_SHIFT;
    const uint64_t tag = (word ^ generation) >> PACKED_TAG_SHIFT;
    const uintptr_t between = tag & ((1 << (RULE_PAGE_SHIFT - RULE_SLOT_BITS)) - 1);
    const uintptr_t above = tag >> (RULE_PAGE_SHIFT - RULE_SLOT_BITS);
    const uintptr_t slot = place & ((1 << RULE_SLOT_BITS) - 1);
    const uintptr_t page = place >> RULE_SLOT_BITS;
    return (above << (RULE_PAGE_SHIFT + RULE_PAGE_BITS) | page << RULE_PAGE_SHIFT |
            between << RULE_SLOT_BITS | slot)
           << ARCH_CODE_SHIFT;
}

/* Forgets the rules of addresses from `first` to `last`, whose code is about to be unmapped. Rules
 * that are stored meanwhile may stay. Cost: about 10 µs. Context: any. Async-signal-safe: yes. */
static inline void rule_cache_forget(struct rule_cache *cache, uintptr_t first, uintptr_t last) {
    for (uintptr_t place = 0; place < RULE_CACHE_ENTRIES; place++) {
        const uint64_t word = atomic_load_explicit(&cache->entries[place], memory_order_relaxed);
        if (word && rule_word_address(word, place) - first <= last - first)
            atomic_store_explicit(&cache->entries[place], 0, memory_order_relaxed);
    }
}

/* Writes to the page of the key's word, without a change. For a page that is probably not mapped
 * yet, because the kernel maps a page twice that is read first and written later. Context: any.
 * Async-signal-safe: yes. */
static inline void rule_cache_touch(struct rule_cache *cache, struct rule_key key) {
    atomic_fetch_or_explicit(&cache->entries[rule_place(key.address)], 0, memory_order_relaxed);
}

/* Forgets every rule, because an address may now belong to another library. Call before and after
 * unloading. Context: any. Async-signal-safe: yes. */
static inline void rule_cache_invalidate(struct rule_cache *cache) {
    uint64_t generation = atomic_load(&cache->generation);
    while (!rule_generation_is_pause(generation) &&
           !atomic_compare_exchange_weak(&cache->generation, &generation, generation + 1))
        continue; /* another thread has begun a generation, or ended a pause */
    if (!rule_generation_is_pause(generation))
        generation++;
    if (rule_generation_is_pause(generation))
        rule_cache_end_pause(cache, generation);
}

/* Forgets the writers of the parent, which do not exist in the child. If there was one, it may have
 * stopped in the middle of the emptying, or before it marked its page: then every page counts as
 * used. Context: fork handler. */
static inline void rule_cache_after_fork(struct rule_cache *cache) {
    if (atomic_exchange(&cache->writers, 0))
        atomic_store(&cache->used, UINT32_MAX);
}

#endif
