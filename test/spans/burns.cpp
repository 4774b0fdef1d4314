/* Runs eight threads that burn CPU time in spans, in functions that are named after the spans that
 * may be active in them, and change the span some thousand times in a second of CPU time. A sample
 * of burns_K belongs to a span whose number leaves K when it is divided by four. */
#include "burn.h"
#include "otelprof.h"
#include "published.h"

#include <thread>
#include <vector>

enum { THREADS = 8, SPANS = 64 };

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
    /* by the first export the profiler has searched for publishers of spans */
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
