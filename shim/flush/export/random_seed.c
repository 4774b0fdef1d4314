#include "random_seed.h"

#include "clock.h"
#include "hash.h"

#include <sys/random.h>
#include <unistd.h>

uint64_t random_seed(void) {
    uint64_t seed = 0;
    if (getrandom(&seed, sizeof seed, GRND_NONBLOCK) != (ssize_t)sizeof seed) {
        const uint64_t words[] = {monotonic_nano(), (uint64_t)getpid(), (uint64_t)gettid()};
        seed = hash_words(HASH_MULTIPLIER, words, sizeof words / sizeof *words);
    }
    return seed | 1;
}
