#include "pending_signal.h"

#include "arch_syscall.h"
#include "record/thread_files.h"

#include <stdint.h>
#include <sys/syscall.h>

/* Has the layout of the kernel's sigset: one word of bits. */
typedef uint64_t kernel_set;

static kernel_set set_of(int number) {
    return UINT64_C(1) << (number - 1);
}

/* Returns whether the signal is pending for the thread or the process. The caller asks this before
 * is_pending_for_thread(): most often no signal is pending, and a filter of system calls is more
 * likely to permit this call than the next. */
static bool is_pending(int number) {
    kernel_set pending = 0;
    return arch_system_call(SYS_rt_sigpending, (long)&pending, sizeof pending, 0, 0, 0, 0) == 0 &&
           (pending & set_of(number));
}

/* Returns whether the signal is in the thread's own queue, which the kernel empties first
 * (signal(7); dequeue_signal()). Returns true if the query is refused: a signal that is put back
 * into the thread's own queue reaches no other thread, and so ends none. */
static bool is_pending_for_thread(int number) {
    kernel_set pending;
    return !thread_status_read(0, "\nSigPnd:\t", 16, &pending) || (pending & set_of(number));
}

bool pending_signal_take(int number, struct pending_signal *taken) {
    const kernel_set set = set_of(number);
    const struct timespec at_once = {0, 0};
    if (!is_pending(number))
        return false;
    taken->of_thread = is_pending_for_thread(number);
    return arch_system_call(SYS_rt_sigtimedwait, (long)&set, (long)&taken->info, (long)&at_once,
                            sizeof set, 0, 0) == number;
}

/* Sends to the thread's own id, the only one to which the kernel lets a thread send arbitrary
 * information. rt_sigqueueinfo() takes a thread's id as the id of its process. */
void pending_signal_put_back(struct pending_signal *taken) {
    const long process = arch_system_call(SYS_getpid, 0, 0, 0, 0, 0, 0);
    const long thread = arch_system_call(SYS_gettid, 0, 0, 0, 0, 0, 0);
    const int number = taken->info.si_signo;
    const long info = (long)&taken->info;
    if (taken->of_thread) {
        if (arch_system_call(SYS_rt_tgsigqueueinfo, process, thread, number, info, 0, 0) != 0)
            (void)arch_system_call(SYS_tgkill, process, thread, number, 0, 0, 0);
    } else if (arch_system_call(SYS_rt_sigqueueinfo, thread, number, info, 0, 0, 0) != 0)
        (void)arch_system_call(SYS_kill, process, number, 0, 0, 0, 0);
}
