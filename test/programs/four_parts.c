/* Runs four functions that share the CPU time in a known way, over and over: `four_parts THREADS
 * ROUNDS`. With -DHASHES=120 one of them does 20 % more than with 100. A round is some 0.13 ms of
 * CPU. */
#include "noipa.h"
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

#ifndef HASHES
#define HASHES 100
#endif
#define UNIT 400

static volatile uint64_t sink;

#define PART(name, units)                                                                          \
    NOIPA static void name(uint64_t seed) {                                                        \
        for (int i = 0; i < UNIT * (units); i++) {                                                 \
            seed = seed * 6364136223846793005u + 1442695040888963407u;                             \
        }                                                                                          \
        sink = seed;                                                                               \
    }

PART(parses, 70)
PART(hashes, HASHES)
PART(sorts, 60)
PART(writes, 30)

static void *works(void *rounds) {
    for (intptr_t round = (intptr_t)rounds; round > 0; round--) {
        parses((uint64_t)round);
        hashes((uint64_t)round);
        sorts((uint64_t)round);
        writes((uint64_t)round);
    }
    return NULL;
}

int main(int argc, char **argv) {
    const intptr_t rounds = argc > 2 ? atol(argv[2]) : 1;
    pthread_t threads[64];
    const int count = argc > 1 && atoi(argv[1]) < 64 ? atoi(argv[1]) : 1;
    for (int i = 0; i < count; i++) {
        if (pthread_create(&threads[i], NULL, works, (void *)rounds)) {
            return 1;
        }
    }
    for (int i = 0; i < count; i++) {
        pthread_join(threads[i], NULL);
    }
}
