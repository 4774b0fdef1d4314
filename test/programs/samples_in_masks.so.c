/* Is preloaded behind the profiler, and so initialised before it: its fork handler is the last that
 * runs before the fork, where the profiler has blocked its signal. The CPU timer expires there. */
#include "cpu_sample.h"

#include <pthread.h>

static void prepare(void) {
    TAKE_CPU_SAMPLE();
}

__attribute__((constructor)) static void construct(void) {
    (void)pthread_atfork(prepare, NULL, NULL);
}
