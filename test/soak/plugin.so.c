/* What churn loads and unloads: TLS of its own, a constructor and a destructor that allocate. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

void *plugin_work(void *(*call_back)(uint64_t), uint64_t seed);

static __thread char local[2000] = {1};
static char *kept;

__attribute__((constructor)) static void begin(void) {
    kept = malloc(3000);
    memset(kept, 7, 3000);
}

__attribute__((destructor)) static void end(void) {
    free(kept);
    kept = NULL;
}

__attribute__((noipa)) static uint64_t plugin_spin(uint64_t x) {
    for (int i = 0; i < 20000; i++)
        x = x * 6364136223846793005u + 1442695040888963407u;
    return x;
}

__attribute__((noipa)) void *plugin_work(void *(*call_back)(uint64_t), uint64_t seed) {
    local[seed % sizeof local]++;
    void *volatile object = call_back(plugin_spin(seed));
    return object;
}
