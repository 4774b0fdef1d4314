/* Takes CPU samples at chosen places of Python programs, which call this by ctypes.PyDLL: the line
 * that calls take_cpu_sample() is charged with all CPU time since the thread's last sample; from
 * hold_cpu_samples() on the thread has no other samples (cpu_sample.h). */
#include "cpu_sample.h"

void hold_cpu_samples(void);
void take_cpu_sample(void);

void hold_cpu_samples(void) {
    cpu_samples_hold();
}

void take_cpu_sample(void) {
    TAKE_CPU_SAMPLE();
}
