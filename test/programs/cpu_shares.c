/* Burns CPU in four functions at 10, 20, 30 and 40 %, on THREADS threads, and prints the true CPU
 * times.
 *
 * Each burst is timed by its own function on the thread's CPU clock, so the truth includes whatever
 * the scheduler and the profiler did to it. Bursts are long against the sampling period and take
 * turns, so a profile's error comes from their edges alone. burn_30 works in a helper that is
 * inlined; enter_40 reaches burn_40 by a tail call and so is on no stack.
 *
 * usage: cpu_shares THREADS ROUNDS [sampled]
 * A round is 400 ms of CPU a thread. "sampled": 40 ms; each burst takes its thread's only sample at
 * its end, and earlier time is charged to begin().
 */
#include "../../common/helper_name.h"
#include "cpu_sample.h"

#include <dirent.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

enum { BURST_NS = 40000000, SAMPLED_NS = 4000000, MAX_THREADS = 64 };

struct shares {
    uint64_t ns[4]; /* burnt by burn_10, burn_20, burn_30, burn_40 */
};

static volatile uint64_t sink;
static int rounds;
static bool is_sampled;
static uint64_t burst_ns = BURST_NS;

/* Takes the sample here, because a profile names inlined functions, too. */
static inline __attribute__((always_inline)) uint64_t spin(uint64_t x, bool takes_sample) {
    if (takes_sample) {
        TAKE_CPU_SAMPLE();
        return x;
    }
    for (int i = 0; i < 20000; i++)
        x = x * 6364136223846793005u + 1442695040888963407u;
    return x;
}

#define BURN(multiple, WORK)                                                                       \
    const uint64_t start = cpu_now();                                                              \
    uint64_t now;                                                                                  \
    uint64_t x = start;                                                                            \
    do {                                                                                           \
        x = WORK(x, false);                                                                        \
        now = cpu_now();                                                                           \
    } while (now - start < (multiple)*burst_ns);                                                   \
    sink = is_sampled ? WORK(x, true) : x;                                                         \
    shares->ns[(multiple)-1] += now - start

NOIPA static void burn_10(struct shares *shares) {
    BURN(1, spin);
}

NOIPA static void burn_20(struct shares *shares) {
    BURN(2, spin);
}

static inline __attribute__((always_inline)) uint64_t inlined_helper(uint64_t x,
                                                                     bool takes_sample) {
    if (takes_sample) {
        TAKE_CPU_SAMPLE();
        return x;
    }
    for (int i = 0; i < 20000; i++)
        x = (x ^ (x >> 29)) * 0xBF58476D1CE4E5B9u + (x << 7);
    return x;
}

NOIPA static void burn_30(struct shares *shares) {
    BURN(3, inlined_helper);
}

NOIPA static void burn_40(struct shares *shares) {
    BURN(4, spin);
}

NOIPA static void enter_40(struct shares *shares) {
    burn_40(shares); /* the last statement: gcc -O2 makes it a jump */
}

NOIPA static void begin(void) {
    cpu_samples_hold();
    TAKE_CPU_SAMPLE();
}

static void *work(void *arg) {
    struct shares *const shares = arg;
    if (is_sampled)
        begin();
    for (int i = 0; i < rounds; i++) {
        burn_10(shares);
        burn_20(shares);
        burn_30(shares);
        enter_40(shares);
    }
    return NULL;
}

/* Returns the CPU time of the profiler's helper so far: part of getrusage, not of the
 * application. */
static uint64_t helper_ns(void) {
    uint64_t ns = 0;
    DIR *const tasks = opendir("/proc/self/task");
    for (struct dirent *entry; tasks && (entry = readdir(tasks));) {
        char path[400];
        char name[32] = "";
        snprintf(path, sizeof path, "/proc/self/task/%s/comm", entry->d_name);
        FILE *file = fopen(path, "r");
        const bool is_read = file && fgets(name, sizeof name, file);
        name[strcspn(name, "\n")] = 0;
        if (is_read && helper_name_is(name)) {
            fclose(file);
            snprintf(path, sizeof path, "/proc/self/task/%s/schedstat", entry->d_name);
            file = fopen(path, "r");
            if (file && fscanf(file, "%lu", &ns) != 1)
                ns = 0;
        }
        if (file)
            fclose(file);
    }
    if (tasks)
        closedir(tasks);
    return ns;
}

static uint64_t rusage_ns(void) {
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (uint64_t)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1000000000u +
           (uint64_t)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1000u;
}

int main(int argc, char **argv) {
    static struct shares shares[MAX_THREADS];
    pthread_t threads[MAX_THREADS];
    const int count = argc > 1 ? atoi(argv[1]) : 1;
    rounds = argc > 2 ? atoi(argv[2]) : 5;
    is_sampled = argc > 3;
    burst_ns = is_sampled ? SAMPLED_NS : BURST_NS;
    for (int i = 1; i < count; i++)
        pthread_create(&threads[i], NULL, work, &shares[i]);
    work(&shares[0]);
    for (int i = 1; i < count; i++) {
        pthread_join(threads[i], NULL);
        for (int k = 0; k < 4; k++)
            shares[0].ns[k] += shares[i].ns[k];
    }
    printf("{\"functions\": {\"burn_10\": %lu, \"burn_20\": %lu, \"burn_30\": %lu, "
           "\"burn_40\": %lu}, \"rusage\": %lu, \"helper\": %lu}\n",
           shares[0].ns[0], shares[0].ns[1], shares[0].ns[2], shares[0].ns[3], rusage_ns(),
           helper_ns());
    return 0;
}
