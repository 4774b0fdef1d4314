/* Has a live heap that is known at each moment: some objects for good, many for a while, few again,
 * and then two lower peaks. THREADS threads share them, and a child that is forked where they are
 * gone has a peak of its own. Prints what was live at the highest peak, as JSON.
 *     heap_peaks HOLD THREADS REST
 * HOLD: how long the peaks last. REST: the time between them. Milliseconds, or `export`: until an
 * export has been made. */
#include "../../shim/otelprof.h"
#include "flush_timeout.h"
#include "forked.h"
#include "noipa.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST = 4096, GOOD = 500, GOOD_BYTES = 2000, HIGH = 2000, HIGH_BYTES = 3000, LOW = 1500 };
enum { EXPORT = -1 };

static void *volatile kept[GOOD];
static int hold_ms;
static pthread_barrier_t all_have;

static int time_of(const char *argument) {
    return strcmp(argument, "export") == 0 ? EXPORT : atoi(argument);
}

static void let_pass(int ms) {
    if (ms != EXPORT)
        usleep((unsigned)ms * 1000);
    else if (!otelprof_flush(FLUSH_TIMEOUT_MS))
        exit(3);
}

static void give_up(void **objects, int count) {
    for (int i = 0; i < count; i++)
        free(objects[i]);
}

NOIPA static void keep_for_good(void) {
    for (int i = 0; i < GOOD; i++)
        kept[i] = malloc(GOOD_BYTES);
}

NOIPA static void rise_high(void **objects) {
    for (int i = 0; i < HIGH; i++)
        objects[i] = malloc(HIGH_BYTES);
}

NOIPA static void rise_low(void **objects) {
    for (int i = 0; i < LOW; i++)
        objects[i] = malloc(HIGH_BYTES);
}

NOIPA static void rise_in_child(void **objects) {
    for (int i = 0; i < HIGH; i++)
        objects[i] = malloc(GOOD_BYTES);
}

static void *have_a_peak(void *unused) {
    void *objects[MOST];
    rise_high(objects);
    if (pthread_barrier_wait(&all_have) == PTHREAD_BARRIER_SERIAL_THREAD)
        let_pass(hold_ms);
    pthread_barrier_wait(&all_have);
    give_up(objects, HIGH);
    return unused;
}

static void have_peaks_together(int threads) {
    pthread_t others[64];
    pthread_barrier_init(&all_have, NULL, (unsigned)threads);
    for (int i = 1; i < threads; i++)
        pthread_create(&others[i], NULL, have_a_peak, NULL);
    have_a_peak(NULL);
    for (int i = 1; i < threads; i++)
        pthread_join(others[i], NULL);
}

static void have_a_low_peak(void) {
    void *objects[MOST];
    rise_low(objects);
    let_pass(hold_ms);
    give_up(objects, LOW);
}

static int live_in_child(int rest_ms) {
    void *objects[MOST];
    rise_in_child(objects);
    let_pass(rest_ms);
    give_up(objects, HIGH);
    let_pass(rest_ms);
    return 0;
}

int main(int argc, char **argv) {
    const int threads = argc > 2 ? atoi(argv[2]) : 1;
    const int rest_ms = argc > 3 ? time_of(argv[3]) : 0;
    hold_ms = argc > 1 ? time_of(argv[1]) : 0;
    keep_for_good();
    let_pass(rest_ms);
    have_peaks_together(threads);
    let_pass(rest_ms);
    have_a_low_peak();
    const pid_t child = fork_profiled();
    if (child == 0)
        exit(live_in_child(rest_ms));
    have_a_low_peak();
    let_pass(rest_ms);
    waitpid(child, NULL, 0);
    printf("{\"good\": %d, \"high\": %d, \"objects\": %d, \"child\": %d}\n", GOOD * GOOD_BYTES,
           threads * HIGH * HIGH_BYTES, threads * HIGH, HIGH * GOOD_BYTES);
    return 0;
}
