/* Has threads that end by return, pthread_exit and cancellation, each after burning CPU in a
 * function of its own, and a detached thread on a small stack. Prints how each ended, and which
 * cleanup handlers and destructors of keys have run, as the sum of their numbers. */
#include "cpu_sample.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static volatile int burnt;
static int cleaned;
static __thread char local[64];

SAMPLED_BURNER(burn_then_return, 40)
SAMPLED_BURNER(burn_then_exit, 40)
SAMPLED_BURNER(burn_then_cancelled, 40)

static void clean(void *arg) {
    cleaned += *(int *)arg;
}

static void *returning(void *arg) {
    burn_then_return();
    return arg;
}

static void *exiting(void *arg) {
    int one = 1;
    pthread_cleanup_push(clean, &one);
    burn_then_exit();
    pthread_exit(arg);
    pthread_cleanup_pop(0);
    return NULL;
}

static void *cancelled(void *arg) {
    int ten = 10;
    pthread_cleanup_push(clean, &ten);
    burn_then_cancelled();
    burnt = 1;
    for (;;)
        pause();
    pthread_cleanup_pop(0);
    return arg;
}

static void destroy(void *value) {
    cleaned += *(int *)value;
}

static void *with_key(void *arg) {
    static int hundred = 100;
    pthread_key_t key = *(pthread_key_t *)arg;
    pthread_setspecific(key, &hundred);
    local[0] = 1;
    return NULL;
}

int main(void) {
    int value = 3;
    void *result;
    pthread_t threads[3];
    pthread_create(&threads[0], NULL, returning, &value);
    pthread_create(&threads[1], NULL, exiting, &value);
    pthread_create(&threads[2], NULL, cancelled, &value);
    pthread_join(threads[0], &result);
    printf("return: %d\n", result == &value);
    pthread_join(threads[1], &result);
    printf("exit: %d\n", result == &value);
    while (!burnt)
        usleep(1000);
    pthread_cancel(threads[2]);
    pthread_join(threads[2], &result);
    printf("cancel: %d\n", result == PTHREAD_CANCELED);

    pthread_key_t key;
    pthread_key_create(&key, destroy);
    pthread_create(&threads[0], NULL, with_key, &key);
    pthread_join(threads[0], NULL);

    pthread_attr_t attributes; /* a detached thread, on the smallest allowed stack */
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 16384);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    printf("small: %d\n", pthread_create(&threads[0], &attributes, with_key, &key));
    usleep(50000);
    printf("cleaned: %d\n", cleaned);
    return 0;
}
