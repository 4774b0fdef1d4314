/* Is preloaded behind the profiler, and so initialised before it: its handler is the last that runs
 * before the fork itself, when the profiler's handler has taken its locks. */
#include <pthread.h>
#include <signal.h>

static void prepare(void) {
    raise(SIGTERM);
}

__attribute__((constructor)) static void construct(void) {
    (void)pthread_atfork(prepare, NULL, NULL);
}
