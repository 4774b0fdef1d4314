/* CPU samples at chosen places of Python programs, which call this by ctypes.PyDLL: the line that
 * calls take_cpu_sample() is charged with all CPU time since the thread's sample before.
 *
 * Between hold_cpu_samples() and its end a thread has no other samples: the signal is blocked, by
 * an instruction that the profiler's hooks do not see, and what its timer sends waits for
 * take_cpu_sample(). Then time that the interpreter spends between two frames is charged, too. */
#include "cpu_sample.h"

void hold_cpu_samples(void);
void take_cpu_sample(void);

#define BIT(number) (UINT64_C(1) << ((number)-1))

void hold_cpu_samples(void) {
    siginfo_t expiry;
    if (describe_expiry(&expiry))
        bare_sigprocmask(SIG_BLOCK, BIT(expiry.si_signo));
}

/* The signal is delivered in here, also where it is held. */
void take_cpu_sample(void) {
    siginfo_t expiry;
    uint64_t before = 0;
    if (!describe_expiry(&expiry))
        return;
    const uint64_t bit = BIT(expiry.si_signo);
    bare_call(SYS_rt_tgsigqueueinfo, bare_call(SYS_getpid, 0, 0, 0, 0, 0, 0),
              bare_call(SYS_gettid, 0, 0, 0, 0, 0, 0), expiry.si_signo, (long)&expiry, 0, 0);
    bare_call(SYS_rt_sigprocmask, SIG_UNBLOCK, (long)&bit, (long)&before, sizeof bit, 0, 0);
    bare_sigprocmask(SIG_SETMASK, before);
}
