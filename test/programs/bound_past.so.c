/* flags: -Wl,-z,lazy */
/* Is a library to be loaded with RTLD_DEEPBIND: it works, allocates, creates a thread and changes
 * the action of SIGPROF, all by functions that it finds among its own dependencies first. */
#include "cpu_sample.h"

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>

void deep_run(void);
void deep_takes_signal(void);
bool deep_pointers_agree(void);

static void *volatile object;
static int (*volatile const in_data)(pthread_t *, const pthread_attr_t *, void *(*)(void *),
                                     void *) = pthread_create;

SAMPLED_BURNER(deep_burns, 30)

NOIPA static void deep_allocates(void) {
    for (int i = 0; i < 40; i++) {
        object = malloc(1 << 20);
        free(object);
    }
}

static void *in_thread(void *unused) {
    deep_burns();
    deep_allocates();
    return unused;
}

void deep_run(void) {
    pthread_t id;
    if (pthread_create(&id, NULL, in_thread, NULL) == 0)
        pthread_join(id, NULL);
}

void deep_takes_signal(void) {
    signal(SIGPROF, SIG_DFL);
}

/* Compares the address in initialized data with the one that the code uses. */
bool deep_pointers_agree(void) {
    return in_data == pthread_create;
}

__attribute__((constructor)) static void begin(void) {
    if (getenv("TAKES_SIGNAL"))
        deep_takes_signal();
}
