/* Ends by the end of its last thread: main calls pthread_exit, a detached thread goes on for a
 * while. The exit handlers and the thread's key destructor must run, and the status must be 0. */
#include "cpu_sample.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static pthread_key_t key;

static void destroyed(void *value) {
    printf("destroyed %s\n", (const char *)value);
    fflush(stdout);
}

static void at_end(void) {
    puts("exit handler");
}

static void *go_on(void *unused) {
    pthread_setspecific(key, "thread");
    WORK_FOR(50 * NS_PER_MS);
    TAKE_CPU_SAMPLE();
    return unused;
}

int main(void) {
    pthread_t id;
    atexit(at_end);
    pthread_key_create(&key, destroyed);
    pthread_create(&id, NULL, go_on, NULL);
    pthread_detach(id);
    pthread_exit(NULL);
}
