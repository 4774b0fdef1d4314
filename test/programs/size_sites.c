/* Has sites of sizes from 8 B to 64 MiB, in random order on four threads, and prints the true sums
 * of each.
 *
 * usage: size_sites BYTES SEED
 *
 * Each site allocates about BYTES of each of its sizes (of large ones a few objects); about one
 * object in four is kept. The order is drawn, so that small and large objects share every
 * countdown. site_mixed is one call stack for 64 B and for 2 MiB: a profiler that sums first and
 * weighs afterwards is wrong there. Prints {"SITE SIZE": [objects, live objects], ...}.
 */
#include "noipa.h"

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define KEEP(p) __asm__ volatile("" : "+r"(p) : : "memory")

enum { THREADS = 4, KEEP_ONE_IN = 4, LEAST = 3 };

#define SIZES(X)                                                                                   \
    X(site_8, 8)                                                                                   \
    X(site_64, 64)                                                                                 \
    X(site_1k, 1 << 10)                                                                            \
    X(site_8k, 8 << 10)                                                                            \
    X(site_64k, 64 << 10)                                                                          \
    X(site_512k, 512 << 10)                                                                        \
    X(site_4m, 4 << 20)                                                                            \
    X(site_64m, 64 << 20)

#define DEFINE(name, size)                                                                         \
    NOIPA static void *name(size_t bytes) {                                                        \
        void *p = malloc(bytes);                                                                   \
        KEEP(p);                                                                                   \
        return p;                                                                                  \
    }
SIZES(DEFINE)
DEFINE(site_mixed, 0)

struct kind {
    const char *site;
    size_t size;
    void *(*make)(size_t bytes);
};
#define LIST(name, size) {#name, size, name},
static const struct kind kinds[] = {SIZES(LIST){"site_mixed", 64, site_mixed},
                                    {"site_mixed", 2 << 20, site_mixed}};
enum { KINDS = sizeof kinds / sizeof *kinds };

struct worker {
    uint64_t random;
    uint64_t wanted[KINDS];
    uint64_t live[KINDS];
};

static struct worker workers[THREADS];
static uint64_t bytes_per_site;

static uint64_t draw(struct worker *w) {
    w->random ^= w->random << 13;
    w->random ^= w->random >> 7;
    w->random ^= w->random << 17;
    return (w->random * UINT64_C(0x2545f4914f6cdd1d)) >> 20;
}

static uint64_t remaining(const uint64_t *left) {
    uint64_t sum = 0;
    for (int i = 0; i < KINDS; i++)
        sum += left[i];
    return sum;
}

/* Allocates each kind as often as planned, and draws the next one among all that are left. */
static void *run(void *arg) {
    struct worker *const w = arg;
    uint64_t left[KINDS];
    for (int i = 0; i < KINDS; i++)
        left[i] = w->wanted[i];
    for (uint64_t all = remaining(left); all > 0; all--) {
        uint64_t at = draw(w) % all;
        int kind = 0;
        for (; at >= left[kind]; kind++)
            at -= left[kind];
        left[kind]--;
        void *const object = kinds[kind].make(kinds[kind].size);
        if (!object)
            abort();
        if (draw(w) % KEEP_ONE_IN == 0)
            w->live[kind]++;
        else
            free(object);
    }
    return NULL;
}

static void plan(uint64_t seed) {
    for (int t = 0; t < THREADS; t++) {
        struct worker *const w = &workers[t];
        w->random = (seed + 1) * UINT64_C(0x9e3779b97f4a7c15) + (uint64_t)t * 7919 + 1;
        for (int i = 0; i < 10; i++)
            draw(w); /* neighbouring seeds begin alike */
        for (int k = 0; k < KINDS; k++) {
            const uint64_t mean = bytes_per_site / THREADS / kinds[k].size;
            w->wanted[k] = mean / 2 + draw(w) % (mean + LEAST) + (kinds[k].size < 1 << 20);
        }
    }
}

static void print_truth(void) {
    printf("{");
    for (int k = 0; k < KINDS; k++) {
        uint64_t objects = 0;
        uint64_t live = 0;
        for (int t = 0; t < THREADS; t++) {
            objects += workers[t].wanted[k];
            live += workers[t].live[k];
        }
        printf("%s\"%s %zu\": [%lu, %lu]", k ? ", " : "", kinds[k].site, kinds[k].size, objects,
               live);
    }
    printf("}\n");
}

int main(int argc, char **argv) {
    pthread_t ids[THREADS];
    bytes_per_site = argc > 1 ? strtoull(argv[1], NULL, 10) : 4 << 20;
    plan(argc > 2 ? strtoull(argv[2], NULL, 10) : 1);
    for (int t = 0; t < THREADS; t++)
        pthread_create(&ids[t], NULL, run, &workers[t]);
    for (int t = 0; t < THREADS; t++)
        pthread_join(ids[t], NULL);
    print_truth();
    return 0;
}
