/* Runs threads that work and allocate while the profiler is on, off, and on again at another rate.
 * Needs the library that lets a program change the settings (test/settings). Prints the figures
 * that the profile must have, as JSON. */
#include "cpu_work.h"
#include "sites.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

enum {
    THREADS = 3,
    OBJECTS = 100,
    SIZE = 1000,
    ON_MS = 50,
    OFF_MS = 100,
    MORE_THAN_A_COUNTDOWN = 17 << 20, /* countdown.h: COUNTDOWN_MOST */
    NEW_FREQUENCY = 200
};

__attribute__((weak)) void test_change_settings(bool on, unsigned types, uint64_t cpu_frequency,
                                                uint64_t alloc_interval);
__attribute__((weak)) unsigned test_samples_taken(void);

static pthread_barrier_t first_phase; /* main and the threads that begin while sampling is on */
static pthread_barrier_t last_phase;  /* all threads */
static uint64_t used_ns[THREADS + 1]; /* CPU time of each thread, */
static uint64_t off_ns[THREADS + 1];  /* and its part while sampling was off */
static bool sampled_while_off;

/* Works for a while, and until a sample was taken in it. */
#define UNTIL_SAMPLED()                                                                            \
    do {                                                                                           \
        const unsigned before = test_samples_taken();                                              \
        WORK_FOR(ON_MS *NS_PER_MS);                                                                \
        while (test_samples_taken() == before)                                                     \
            WORK_FOR(NS_PER_MS);                                                                   \
    } while (0)

NOIPA static void work_before(void) {
    UNTIL_SAMPLED();
}
/* Are the same function for each thread: so the profile shows which threads have samples again. */
NOIPA static void work_after_0(void) {
    UNTIL_SAMPLED();
}
NOIPA static void work_after_1(void) {
    UNTIL_SAMPLED();
}
NOIPA static void work_after_2(void) {
    UNTIL_SAMPLED();
}
NOIPA static void work_after_3(void) {
    UNTIL_SAMPLED();
}
static void (*const work_after[THREADS + 1])(void) = {work_after_0, work_after_1, work_after_2,
                                                      work_after_3};
BURNER(work_while_off, OFF_MS)

NOIPA static void *allocate_before(void) {
    void *const object = malloc(SIZE);
    __asm__ volatile("" : : "r"(object) : "memory");
    return object;
}
NOIPA static void *allocate_while_off(void) {
    void *const object = malloc(SIZE);
    __asm__ volatile("" : : "r"(object) : "memory");
    return object;
}
NOIPA static void *allocate_after(void) {
    void *const object = malloc(SIZE);
    __asm__ volatile("" : : "r"(object) : "memory");
    return object;
}

/* Allocates until the thread notices that allocations are sampled again. */
static void allocate_a_countdown(void) {
    void *const object = malloc(MORE_THAN_A_COUNTDOWN);
    __asm__ volatile("" : : "r"(object) : "memory");
    free(object);
}

static void be_off(uint64_t *used) {
    const uint64_t start = cpu_now();
    const unsigned samples = test_samples_taken();
    work_while_off();
    for (int i = 0; i < OBJECTS; i++)
        (void)allocate_while_off();
    if (test_samples_taken() != samples)
        sampled_while_off = true;
    *used = cpu_now() - start;
}

static void be_on_again(size_t number) {
    allocate_a_countdown();
    work_after[number]();
    for (int i = 0; i < OBJECTS; i++)
        (void)allocate_after();
    used_ns[number] = cpu_now();
}

static void be_off_and_on_again(size_t number, void **objects) {
    be_off(&off_ns[number]);
    for (int i = 0; objects && i < OBJECTS / 2; i++)
        free(objects[i]);
    pthread_barrier_wait(&last_phase);
    pthread_barrier_wait(&last_phase); /* sampling is on */
    be_on_again(number);
}

static void *worker(void *argument) {
    void *objects[OBJECTS];
    work_before();
    for (int i = 0; i < OBJECTS; i++)
        objects[i] = allocate_before();
    pthread_barrier_wait(&first_phase);
    pthread_barrier_wait(&first_phase); /* sampling is off */
    be_off_and_on_again((size_t)(uintptr_t)argument, objects);
    return NULL;
}

static void *late_worker(void *unused) {
    be_off_and_on_again(THREADS, NULL);
    return unused;
}

static uint64_t sum(const uint64_t of[]) {
    uint64_t all = 0;
    for (int i = 0; i <= THREADS; i++)
        all += of[i];
    return all;
}

int main(void) {
    pthread_t threads[THREADS + 1];
    if (!test_change_settings || !test_samples_taken)
        return 3;
    pthread_barrier_init(&first_phase, NULL, THREADS + 1);
    pthread_barrier_init(&last_phase, NULL, THREADS + 2);
    for (size_t i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, worker, (void *)(uintptr_t)i);
    pthread_barrier_wait(&first_phase);
    test_change_settings(false, 0, 0, 0);
    pthread_barrier_wait(&first_phase);
    pthread_create(&threads[THREADS], NULL, late_worker, NULL);
    pthread_barrier_wait(&last_phase);
    test_change_settings(true, 0, NEW_FREQUENCY, 0);
    pthread_barrier_wait(&last_phase);
    for (size_t i = 0; i <= THREADS; i++)
        pthread_join(threads[i], NULL);
    printf("{\"on_ns\": %lu, \"before\": %d, \"before_live\": %d, \"after\": %d, "
           "\"frequency\": %d, \"sampled_while_off\": %d}\n",
           sum(used_ns) - sum(off_ns), THREADS * OBJECTS, THREADS * OBJECTS / 2,
           (THREADS + 1) * OBJECTS, NEW_FREQUENCY, sampled_while_off);
    return 0;
}
