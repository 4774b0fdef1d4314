#include "random_seed.h"

#include "clock.h"
#include "poisson.h"

#include <sys/random.h>
#include <unistd.h>

uint64_t random_seed(void) {
    uint64_t seed = 0;
    if (getrandom(&seed, sizeof seed, GRND_NONBLOCK) != (ssize_t)sizeof seed)
        return random_first(monotonic_nano(), (uint64_t)getpid(), (uint64_t)gettid());
    return seed | 1;
}
