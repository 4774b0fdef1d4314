#include "clock.h"
#include "sampler.h"

#include <time.h>

/* Bounds the lateness that is logged: it is logged once, if after so much CPU time fewer than this
 * share of the possible signals have come. */
enum { LATE_SHARE = 4, LATE_AFTER_SECONDS = 1 };

static void report_taken(void) {
    const int number = atomic_load(&sampler.timers.signal);
    if (number)
        log_debug(sampler.log,
                  "the program handles the profiling signal itself; CPU time is sampled "
                  "by signal %d from now on",
                  number);
    else
        log_debug(sampler.log, "the program handles every signal that could be used for sampling; "
                               "CPU time is accounted for without stacks");
}

static void report_refused(void) {
    if (sampler.timers.deadly) {
        log_debug(sampler.log,
                  "RLIMIT_RTTIME is 0: the kernel would end the program for a CPU timer; "
                  "its CPU time is accounted for without stacks");
        return;
    }
    const bool process = atomic_load(&sampler.timers.process) != PROCESS_TIMER_OFF;
    log_debug(sampler.log, "the kernel refused a CPU timer for %u threads so far; %s",
              atomic_load(&sampler.timers.refused),
              process ? "one timer of the whole process samples them"
                      : "their CPU time is accounted for without stacks");
}

/* Logs if the timers expire late. The kernel checks CPU timers on its tick; where it switches
 * threads between ticks (a busy machine, HRTICK), the tick can fall into other threads' time slices
 * for seconds. At most one signal is possible in a tick, whose length is the resolution of
 * CLOCK_MONOTONIC_COARSE. */
static void report_late(uint64_t merged) {
    const uint64_t period = sampler.timers.period_nano;
    struct timespec tick = {0, 0};
    if (sampler.logged_late || !period)
        return;
    const uint64_t used = clock_nano(CLOCK_PROCESS_CPUTIME_ID);
    if (used < (uint64_t)LATE_AFTER_SECONDS * NANO_PER_SECOND ||
        clock_getres(CLOCK_MONOTONIC_COARSE, &tick) != 0)
        return;
    const uint64_t expiries = used / period;
    const uint64_t apart = period > (uint64_t)tick.tv_nsec ? period : (uint64_t)tick.tv_nsec;
    const uint64_t came = expiries > merged ? expiries - merged : 0;
    if (came * apart >= used / LATE_SHARE)
        return;
    sampler.logged_late = true;
    log_debug(
        sampler.log,
        "%llu of %llu expiries of CPU timers came late, as one signal with others: the "
        "machine is busy, or threads block every signal; CPU time is right in sum, its stacks "
        "are few",
        (unsigned long long)merged, (unsigned long long)expiries);
}

void sampler_report(uint64_t merged) {
    if (sampler.on && atomic_load(&sampler.taken) && !sampler.logged_taken) {
        sampler.logged_taken = true;
        report_taken();
    }
    if (atomic_load(&sampler.timers.refused) && !sampler.logged_refused) {
        sampler.logged_refused = true;
        report_refused();
    }
    if (atomic_load(&sampler.timers.slowed_down) && !sampler.logged_slow) {
        sampler.logged_slow = true;
        log_debug(sampler.log, "samples cost more than a quarter of their period; the rate of the "
                               "threads concerned is lowered");
    }
    report_late(merged);
}
