/* Measures an Attach with its Detach, in ns of CPU time: by the API's own calls, the median of many
 * rounds; first before the profiler follows them, if possible, then after. */
#include "published.h"

#include <time.h>

#include <algorithm>
#include <vector>

enum { ROUNDS = 101, CALLS = 20000 };

static double cpu_nano() {
    timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

int main() {
    const char *const adaptor_path = std::getenv("ADAPTOR");
    const bool followed = adaptor_path && adaptor_path[0] && is_followed();
    const SpanPointer span = make_span(1);
    api::context::Context none;
    const api::context::Context context = api::trace::SetSpan(none, span);
    std::vector<double> costs;
    for (int round = 0; round < ROUNDS; round++) {
        const double start = cpu_nano();
        for (int i = 0; i < CALLS; i++)
            api::context::RuntimeContext::Attach(context);
        costs.push_back((cpu_nano() - start) / CALLS);
    }
    std::sort(costs.begin(), costs.end());
    std::printf("%s %.1f\n", followed ? "followed" : "plain", costs[ROUNDS / 10]);
    return 0;
}
