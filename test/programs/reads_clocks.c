/* Spends a second of CPU time in functions of the kernel's that are mapped into every process. */
#include "cpu_work.h"

#include <sys/time.h>

int main(void) {
    const uint64_t end = cpu_now() + 1000 * NS_PER_MS;
    struct timeval day;
    struct timespec now;
    while (cpu_now() < end)
        for (int i = 0; i < 2000; i++) {
            clock_gettime(CLOCK_MONOTONIC, &now);
            gettimeofday(&day, NULL);
        }
    return day.tv_sec < 0;
}
