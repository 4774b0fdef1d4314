/* Eight threads burn CPU time in spans, in functions that say by their names which spans may be
 * active in them, and change the span some thousand times in a second of CPU time. A sample of
 * burns_K belongs to a span whose number leaves K when it is divided by four. */
#include "otelprof.h"
#include "published.h"

#include <time.h>

#include <thread>
#include <vector>

enum { THREADS = 8, SPANS = 64, KINDS = 4, BURN_MICROS = 120 };

static uint64_t cpu_nano() {
    timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<uint64_t>(now.tv_sec) * 1000000000u + static_cast<uint64_t>(now.tv_nsec);
}

/* Not a system call for each look: then samples would lie in it. */
static inline __attribute__((always_inline)) void burn(unsigned salt) {
    const uint64_t end = cpu_nano() + BURN_MICROS * 1000;
    volatile unsigned work = salt;
    do {
        for (int i = 0; i < 20000; i++)
            work = work * 1664525u + 1013904223u;
    } while (cpu_nano() < end);
}

extern "C" {
__attribute__((noinline)) void burns_0() {
    burn(10);
}
__attribute__((noinline)) void burns_1() {
    burn(11);
}
__attribute__((noinline)) void burns_2() {
    burn(12);
}
__attribute__((noinline)) void burns_3() {
    burn(13);
}
}

static void burn_in(uint64_t number) {
    static void (*const kinds[KINDS])() = {burns_0, burns_1, burns_2, burns_3};
    void (*volatile const burns)() = kinds[number % KINDS];
    burns();
}

static void work(unsigned thread, double seconds) {
    const uint64_t first = (thread + 1) * SPANS;
    const uint64_t end = cpu_nano() + static_cast<uint64_t>(seconds * 1e9);
    for (uint64_t i = 0; cpu_nano() < end; i++) {
        const uint64_t outer = first + i % SPANS;
        const uint64_t inner = first + (i * 7 + 1) % SPANS;
        api::trace::Scope scope(make_span(outer));
        burn_in(outer);
        {
            api::trace::Scope nested(make_span(inner));
            burn_in(inner);
        }
        burn_in(outer);
    }
}

int main(int argc, char **argv) {
    const double seconds = argc > 1 ? std::atof(argv[1]) : 1;
    const bool followed = is_followed();
    /* with the first export the profiler has looked where spans are published */
    for (int i = 0; i < 2; i++)
        (void)otelprof_flush(10000);
    std::vector<std::thread> threads;
    for (unsigned i = 0; i < THREADS; i++)
        threads.emplace_back(work, i, seconds);
    for (auto &thread : threads)
        thread.join();
    std::puts(followed ? "burnt in spans" : "not followed");
    return 0;
}
