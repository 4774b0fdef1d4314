/* Is a library to load and unload: it has TLS of its own, a constructor that allocates, a
 * destructor that frees, and a function that works and then calls back. */
#include "noipa.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

void *plugin_work(void *(*call_back)(uint64_t), uint64_t value, int turns);

static __thread char local[4096] = {1};
static char *kept;

__attribute__((constructor)) static void begin(void) {
    kept = malloc(3000);
    memset(kept, 7, 3000);
}

__attribute__((destructor)) static void end(void) {
    free(kept);
    kept = NULL;
}

NOIPA static uint64_t plugin_spin(uint64_t x, int turns) {
    for (int i = 0; i < turns; i++)
        x = x * 6364136223846793005u + 1442695040888963407u;
    return x;
}

/* Spins for `turns` rounds of about a nanosecond, and returns the result of call_back(value). */
NOIPA void *plugin_work(void *(*call_back)(uint64_t), uint64_t value, int turns) {
    local[plugin_spin(value, turns) % sizeof local]++;
    void *volatile result = call_back(value); /* prevents a tail call */
    return result;
}
