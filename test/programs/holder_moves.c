/* Lets a thread wait for one lock for 1.2 s; its holder sleeps in one function, then in another. */
#include <pthread.h>
#include <semaphore.h>
#include <time.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static sem_t held;

__attribute__((noinline)) static void holds_in_one_place(void) {
    nanosleep(&(struct timespec){.tv_nsec = 600000000}, NULL);
    __asm__ volatile("");
}

__attribute__((noinline)) static void holds_in_another(void) {
    nanosleep(&(struct timespec){.tv_nsec = 590000000}, NULL);
    __asm__ volatile("");
}

static void *holds(void *unused) {
    pthread_mutex_lock(&lock);
    sem_post(&held);
    holds_in_one_place();
    holds_in_another();
    pthread_mutex_unlock(&lock);
    return unused;
}

__attribute__((noinline)) static void waits_for_lock(void) {
    pthread_mutex_lock(&lock);
    pthread_mutex_unlock(&lock);
}

int main(void) {
    pthread_t holder;
    sem_init(&held, 0, 0);
    pthread_create(&holder, NULL, holds, NULL);
    while (sem_wait(&held) != 0)
        ;
    waits_for_lock();
    pthread_join(holder, NULL);
    return 0;
}
