/* Is a profiler as it must not be: its handler allocates, locks and calls the loader. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/time.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static void *volatile sink;
static int taken;

static void on_signal(int number) {
    (void)number;
    __atomic_fetch_add(&taken, 1, __ATOMIC_SEQ_CST);
    pthread_mutex_lock(&mutex);
    sink = malloc(100);
    free(sink);
    sink = dlsym(RTLD_DEFAULT, "qsort");
    pthread_mutex_unlock(&mutex);
}

__attribute__((constructor)) static void begin(void) {
    const struct itimerval every = {{0, 4000}, {0, 4000}};
    signal(SIGPROF, on_signal);
    setitimer(ITIMER_PROF, &every, NULL);
}
