#include "pending_signal.h"

#include "bare_syscall.h"

#include <stdint.h>
#include <sys/syscall.h>

/* The kernel's sigset: one word of bits. */
typedef uint64_t kernel_set;

static kernel_set set_of(int number) {
    return UINT64_C(1) << (number - 1);
}

/* Asked first: most often there is none, and a filter of system calls is likelier to know this
 * call than the next. */
static bool is_pending(int number) {
    kernel_set pending = 0;
    return bare_syscall(SYS_rt_sigpending, (long)&pending, sizeof pending, 0, 0, 0, 0) == 0 &&
           (pending & set_of(number));
}

bool pending_signal_take(int number, siginfo_t *info) {
    const kernel_set set = set_of(number);
    const struct timespec at_once = {0, 0};
    return is_pending(number) && bare_syscall(SYS_rt_sigtimedwait, (long)&set, (long)info,
                                              (long)&at_once, sizeof set, 0, 0) == number;
}

/* The kernel lets a thread send any information under its own id alone. rt_sigqueueinfo() takes a
 * thread's id for that of its process. */
void pending_signal_put_back(siginfo_t *info) {
    const long process = bare_syscall(SYS_getpid, 0, 0, 0, 0, 0, 0);
    const long thread = bare_syscall(SYS_gettid, 0, 0, 0, 0, 0, 0);
    const int number = info->si_signo;
    if (info->si_code == SI_TKILL)
        (void)bare_syscall(SYS_tgkill, process, thread, number, 0, 0, 0);
    else if (bare_syscall(SYS_rt_sigqueueinfo, thread, number, (long)info, 0, 0, 0) != 0)
        (void)bare_syscall(SYS_kill, process, number, 0, 0, 0, 0);
}
