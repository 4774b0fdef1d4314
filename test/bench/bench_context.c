/* Measures a sample whose thread works for a span, beside one without: nanoseconds for each pair of
 * malloc and free, of which each is a sample (OTEL_PROFILER_ALLOC_INTERVAL=1).
 *
 * usage: bench_context PAIRS
 *
 * Prints "KIND NANOSECONDS", the medians of ROUNDS turns, for
 *   - none: nothing is published
 *   - own: the record is thread-local, beside the variable
 *   - heap: the record is elsewhere: the kernel checks whether it is there
 *   - attributes: as `own`, with four attributes of 16 bytes */
/* flags: -rdynamic */
#include "../programs/spans.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { ROUNDS = 15, KINDS = 4, SETTLE_US = 200000 };

SPANS_EXPORT __thread struct span_record *otel_thread_ctx_v1;
static __thread struct span_record own;
static __thread struct {
    struct span_record record;
    uint8_t more[16];
} with_attributes;

static double cpu_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static double run(struct span_record *record, long pairs) {
    otel_thread_ctx_v1 = record;
    const double start = cpu_now();
    for (long i = 0; i < pairs; i++) {
        void *volatile block = malloc(64);
        free(block);
    }
    const double spent = cpu_now() - start;
    otel_thread_ctx_v1 = NULL;
    return spent / (double)pairs;
}

static int by_size(const void *a, const void *b) {
    const double x = *(const double *)a;
    const double y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv) {
    static const char *const names[KINDS] = {"none", "own", "heap", "attributes"};
    static double found[KINDS][ROUNDS];
    const long pairs = (argc > 1 ? atol(argv[1]) : 1000000) / ROUNDS;
    struct span_record *const heap = calloc(1, sizeof *heap);
    struct span_record *const records[KINDS] = {NULL, &own, heap, &with_attributes.record};
    for (int kind = 1; kind < KINDS; kind++) {
        span_write(records[kind], 1, 1);
        records[kind]->valid = 1;
    }
    for (int i = 0; i < 4; i++) {
        with_attributes.record.attributes[18 * i] = (uint8_t)i;
        with_attributes.record.attributes[18 * i + 1] = 16;
    }
    with_attributes.record.attribute_bytes = 72;
    /* the profiler searches for the variable some milliseconds after the start */
    usleep(SETTLE_US);
    for (int round = 0; round < ROUNDS; round++)
        for (int kind = 0; kind < KINDS; kind++)
            found[kind][round] = run(records[kind], pairs);
    for (int kind = 0; kind < KINDS; kind++) {
        qsort(found[kind], ROUNDS, sizeof(double), by_size);
        printf("%s %.0f\n", names[kind], found[kind][ROUNDS / 2]);
    }
    return 0;
}
