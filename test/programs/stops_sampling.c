/* Works with a sample at the end, works on without one, stops sampling, exports, and works in vain.
 * Prints the CPU time until the stop, and the moment after it (CLOCK_REALTIME), in nanoseconds. */
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
    struct timespec stopped;
    const uint64_t used = cpu_now();
    clock_gettime(CLOCK_REALTIME, &stopped);
    printf("%llu %lld%09ld\n", (unsigned long long)used, (long long)stopped.tv_sec,
           stopped.tv_nsec);
    works_in_vain();
    if (!otelprof_flush(FLUSH_TIMEOUT_MS))
        return 3;
    works_in_vain();
    return 0;
}
