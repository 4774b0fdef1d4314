/* Is a process to send requests to: it burns CPU time, keeps memory, allocates and frees, and its
 * threads wait, until a file exists: works_and_waits FILE. */
/* flags: -lpthread */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { KEPT = 1000, KEPT_BYTES = 1024, CHURNED = 100, CHURNED_BYTES = 1000 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static volatile unsigned long result;
static volatile int is_over;
static void *kept[KEPT];

__attribute__((noinline)) void burns_cpu(void);
__attribute__((noinline)) void keeps_memory(void);
__attribute__((noinline)) void churns(void);
__attribute__((noinline)) void holds_lock(void);
__attribute__((noinline)) void wants_lock(void);

void burns_cpu(void) {
    for (unsigned long i = 0; i < 2000000; i++)
        result += i * i;
}

void keeps_memory(void) {
    for (int i = 0; i < KEPT; i++)
        kept[i] = malloc(KEPT_BYTES);
}

void churns(void) {
    for (int i = 0; i < CHURNED; i++) {
        void *volatile block = malloc(CHURNED_BYTES);
        free(block);
    }
}

void holds_lock(void) {
    pthread_mutex_lock(&lock);
    usleep(20 * 1000);
    pthread_mutex_unlock(&lock);
    usleep(1000);
}

void wants_lock(void) {
    pthread_mutex_lock(&lock);
    pthread_mutex_unlock(&lock);
}

static void *repeat(void *arg) {
    void (*const work)(void) = *(void (**)(void))arg;
    while (!is_over)
        work();
    return NULL;
}

static void *burns(void *unused) {
    void (*work)(void) = burns_cpu;
    (void)unused;
    pthread_setname_np(pthread_self(), "burner");
    return repeat(&work);
}

static void *holds(void *unused) {
    void (*work)(void) = holds_lock;
    (void)unused;
    pthread_setname_np(pthread_self(), "holder");
    return repeat(&work);
}

static void *wants(void *unused) {
    void (*work)(void) = wants_lock;
    (void)unused;
    pthread_setname_np(pthread_self(), "wanter");
    return repeat(&work);
}

int main(int argc, char **argv) {
    void *(*const threads[])(void *) = {burns, holds, wants};
    pthread_t ids[3];
    if (argc != 2)
        return 2;
    keeps_memory();
    for (int i = 0; i < 3; i++)
        pthread_create(&ids[i], NULL, threads[i], NULL);
    while (access(argv[1], F_OK) != 0) {
        churns();
        usleep(10 * 1000);
    }
    is_over = 1;
    for (int i = 0; i < 3; i++)
        pthread_join(ids[i], NULL);
    printf("%d\n", kept[KEPT - 1] != NULL);
    return 7;
}
