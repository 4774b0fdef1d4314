/* Defines what CPython up to 3.10 defines, as far as the profiler searches for it, and ends with
 * status 42: with "beside", while a thread of it works.
 * flags: -rdynamic
 */
#define _GNU_SOURCE
#include "cpu_work.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#define EXPORTED __attribute__((visibility("default")))

EXPORTED char _PyRuntime[64] = {1};
EXPORTED char PyCode_Type[64] = {1};

BURNER(works, 300)

static atomic_bool has_begun;

static void *work_on(void *unused) {
    (void)unused;
    atomic_store(&has_begun, true);
    for (;;)
        works();
    return NULL;
}

int main(int argc, char **argv) {
    pthread_t thread;
    works();
    if (argc < 2 || strcmp(argv[1], "beside") != 0)
        return 42;
    if (pthread_create(&thread, NULL, work_on, NULL) != 0)
        return 1;
    while (!atomic_load(&has_begun))
        ;
    return 42;
}
