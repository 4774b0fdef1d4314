/* Is a library whose constructor, which runs before the profiler's, starts a thread that burns
 * CPU. */
#include "cpu_sample.h"

#include <pthread.h>

static pthread_t thread;

SAMPLED_BURNER(burn_early, 50)

static void *start_early(void *unused) {
    burn_early();
    return unused;
}

__attribute__((constructor)) static void begin(void) {
    pthread_create(&thread, NULL, start_early, NULL);
}

void early_join(void);
void early_join(void) {
    pthread_join(thread, NULL);
}
