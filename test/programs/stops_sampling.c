/* Works with a sample at the end, works on without one, stops sampling, exports, and works in vain.
 * Prints the CPU time until the stop, in nanoseconds. */
#include "../../shim/otelprof.h"
#include "cpu_sample.h"
#include "flush_timeout.h"

SAMPLED_BURNER(works_before, 50)

NOIPA static void works_unsampled(void) {
    WORK_FOR(30 * NS_PER_MS);
}

NOIPA static void works_in_vain(void) {
    WORK_FOR(50 * NS_PER_MS);
}

int main(void) {
    cpu_samples_await();
    cpu_samples_hold();
    works_before();
    works_unsampled();
    if (!otelprof_stop())
        return 2;
    printf("%llu\n", (unsigned long long)cpu_now());
    if (!otelprof_flush(FLUSH_TIMEOUT_MS))
        return 3;
    works_in_vain();
    return 0;
}
