/* Burns CPU in one function, a third of it in its own code and two thirds in a helper that is
 * inlined into it, and nowhere else: many milliseconds pass between two reads of the clock.
 *
 * usage: inlined_work MILLISECONDS
 */
#include "cpu_work.h"

#include <stdint.h>
#include <stdlib.h>

enum { STEPS = 4000000 };

static inline __attribute__((always_inline)) uint64_t inlined_work(uint64_t x) {
    for (int i = 0; i < 2 * STEPS; i++) {
        x = (x ^ (x >> 29)) * UINT64_C(0xBF58476D1CE4E5B9) + (x << 7);
        __asm__ volatile("" : "+r"(x));
    }
    return x;
}

NOIPA static uint64_t has_inlined_work(uint64_t nanoseconds) {
    const uint64_t end = cpu_now() + nanoseconds;
    uint64_t x = end;
    do {
        x = inlined_work(x);
        for (int i = 0; i < STEPS; i++) {
            x = (x ^ (x >> 31)) * UINT64_C(0x94D049BB133111EB) + (x << 5);
            __asm__ volatile("" : "+r"(x));
        }
    } while (cpu_now() < end);
    return x;
}

int main(int argc, char **argv) {
    const uint64_t milliseconds = argc > 1 ? strtoull(argv[1], NULL, 10) : 1000;
    return has_inlined_work(milliseconds * NS_PER_MS) == 0; /* the result is never 0 */
}
