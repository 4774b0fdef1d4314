/* Has a constructor that holds the loader's lock until the loading program lets it go on. */
#include <semaphore.h>

extern sem_t loader_is_held __attribute__((weak));
extern sem_t loader_may_go_on __attribute__((weak));

__attribute__((constructor)) static void begin(void) {
    if (!&loader_is_held)
        return;
    sem_post(&loader_is_held);
    sem_wait(&loader_may_go_on);
}
