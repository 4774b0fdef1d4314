/* Is the bound for every preload that keeps a thread: it starts one, which sleeps. What a fork
 * costs more then is glibc's, which has locks to take and a stack to reclaim, and the kernel's. */
#include <pthread.h>
#include <unistd.h>

static void *sleep_on(void *unused) {
    for (;;)
        pause();
    return unused;
}

__attribute__((constructor)) static void start(void) {
    pthread_t thread;
    (void)pthread_create(&thread, NULL, sleep_on, NULL);
}
