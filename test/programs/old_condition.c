/* Is a program of before 2003: its condition variables are those of glibc 2.2.5, one word that
 * leads to memory of libc's. pthread_cond_wait of 2.3.2 would wait for ever, or write past the
 * variable. Waits and signals twice: at the first call a function may still be unbound. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

__asm__(".symver pthread_cond_wait, pthread_cond_wait@GLIBC_2.2.5");
__asm__(".symver pthread_cond_timedwait, pthread_cond_timedwait@GLIBC_2.2.5");
__asm__(".symver pthread_cond_signal, pthread_cond_signal@GLIBC_2.2.5");

static struct {
    void *cond; /* the type as in that version */
    unsigned char behind[64];
} old;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int turn;

static void *signal_twice(void *unused) {
    for (int i = 1; i <= 2; i++) {
        pthread_mutex_lock(&mutex);
        turn = i;
        pthread_cond_signal((pthread_cond_t *)&old.cond);
        pthread_mutex_unlock(&mutex);
        while (turn == i) {
            const struct timespec time = {0, 1000000};
            nanosleep(&time, NULL);
        }
    }
    return unused;
}

static void wait_for(int wanted) {
    pthread_mutex_lock(&mutex);
    while (turn != wanted)
        pthread_cond_wait((pthread_cond_t *)&old.cond, &mutex);
    turn = -wanted;
    pthread_mutex_unlock(&mutex);
}

int main(void) {
    const struct timespec past = {1, 0};
    unsigned char as_it_was[sizeof old.behind];
    pthread_t thread;
    memset(old.behind, 0x5a, sizeof old.behind);
    memcpy(as_it_was, old.behind, sizeof as_it_was);
    pthread_create(&thread, NULL, signal_twice, NULL);
    wait_for(1);
    wait_for(2);
    pthread_join(thread, NULL);
    pthread_mutex_lock(&mutex);
    printf("timed out: %d\n", pthread_cond_timedwait((pthread_cond_t *)&old.cond, &mutex, &past));
    printf("written past it: %d\n", memcmp(as_it_was, old.behind, sizeof as_it_was) != 0);
    return 0;
}
