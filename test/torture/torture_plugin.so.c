/* A library to load and unload: TLS of its own, a constructor and a destructor that allocate. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int plugin_work(int (*call_back)(int), int value);

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

__attribute__((noinline)) int plugin_work(int (*call_back)(int), int value) {
    uint64_t x = (uint64_t)value;
    local[value & 4095]++;
    for (int i = 0; i < 2000; i++)
        x = x * 6364136223846793005u + 1442695040888963407u;
    return call_back(value) + (int)(x & 1) - (int)(x & 1) + (local[0] == 0 ? 1 : 0);
}
