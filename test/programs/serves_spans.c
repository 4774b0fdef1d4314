/* Works for two spans and for none, each in a function of its own that burns CPU time and allocates
 * and takes a sample at its end, as often as requested: serves_spans TIMES. otelprof.h sets the
 * thread's context: the span, and two labels, of which one has a name that the profiler uses
 * itself. */
#define _GNU_SOURCE
#include "../../shim/otelprof.h"
#include "cpu_sample.h"

#include <stdio.h>
#include <stdlib.h>

static const uint8_t trace_id[16] = {0x4b, 0xf9, 0x2f, 0x35, 0x77, 0xb3, 0x4d, 0xa6,
                                     0xa3, 0xce, 0x92, 0x9d, 0x0e, 0x0e, 0x47, 0x36};
static const uint8_t span_a[8] = {0x00, 0xf0, 0x67, 0xaa, 0x0b, 0xa9, 0x02, 0xb7};
static const uint8_t span_b[8] = {0xff, 0xf0, 0x67, 0xaa, 0x0b, 0xa9, 0x02, 0x00};

enum { MILLISECONDS = 5, BLOCKS = 400, BLOCK_BYTES = 10000 };

static inline __attribute__((always_inline)) void work(void) {
    for (int i = 0; i < BLOCKS; i++) {
        void *const block = malloc(BLOCK_BYTES);
        __asm__ volatile("" : : "r"(block) : "memory");
        free(block);
    }
    WORK_FOR(MILLISECONDS * NS_PER_MS);
    TAKE_CPU_SAMPLE();
}

NOIPA static void works_for_a(void) {
    work();
    __asm__ volatile("");
}

NOIPA static void works_for_b(void) {
    work();
    __asm__ volatile("");
}

NOIPA static void works_for_none(void) {
    work();
    __asm__ volatile("");
}

static void serve(const uint8_t *span, const char *route, void (*handler)(void)) {
    OTELPROF_SPAN_SCOPE(trace_id, span);
    OTELPROF_LABEL_SCOPE("http.route", route);
    OTELPROF_LABEL_SCOPE("thread.name", "theirs");
    handler();
}

int main(int count, char **arguments) {
    if (count != 2)
        return 2;
    cpu_samples_await();
    for (int i = atoi(arguments[1]); i > 0; i--) {
        serve(span_a, "/a", works_for_a);
        serve(span_b, "/b", works_for_b);
        works_for_none();
    }
    puts("worked");
    return 0;
}
