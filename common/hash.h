/* Hashes addresses, stacks and other bytes.
 *
 * Multiply-and-fold: each word is multiplied by an odd 64-bit constant (2^64 ÷ golden ratio, Knuth,
 * TAOCP 6.4) and the halves are folded together, so that the low bits, which index tables, depend
 * on all input bits. The hash does not resist hostile input; most keys are the process's own
 * addresses. Context: any. Async-signal-safe: yes.
 */
#ifndef OTELPROF_HASH_H
#define OTELPROF_HASH_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define HASH_MULTIPLIER 0x9E3779B97F4A7C15u

static inline uint64_t hash_word(uint64_t seed, uint64_t word) {
    const uint64_t product = (seed ^ word) * HASH_MULTIPLIER;
    return product ^ (product >> 32);
}

static inline uint64_t hash_words(uint64_t seed, const uint64_t *words, uint32_t count) {
    uint64_t hash = seed;
    for (uint32_t i = 0; i < count; i++)
        hash = hash_word(hash, words[i]);
    return hash;
}

/* Hashes bytes of any alignment, eight at a time. Zeros behind the last byte do not count: a caller
 * whose sizes differ includes the size in the seed. */
static inline uint64_t hash_memory(uint64_t seed, const void *bytes, size_t size) {
    uint64_t hash = seed;
    for (size_t at = 0; at < size; at += sizeof(uint64_t)) {
        uint64_t word = 0;
        const size_t left = size - at;
        memcpy(&word, (const char *)bytes + at, left < sizeof word ? left : sizeof word);
        hash = hash_word(hash, word);
    }
    return hash;
}

#endif
