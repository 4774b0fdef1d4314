#include "libc_signal.h"

#include "bare_syscall.h"
#include "cpu_timers.h"
#include "sampler.h"

#include <stddef.h>
#include <sys/syscall.h>

enum { STATE_UNKNOWN, STATE_TAKEN, STATE_REFUSED };

static bool libc_signal_action(const struct kernel_action *action, struct kernel_action *old) {
    return bare_syscall(SYS_rt_sigaction, LIBC_SIGNAL, (long)action, (long)old, sizeof action->mask,
                        0, 0) == 0;
}

/* Sets libc's restorer, by which unwinders recognize a signal's frame. */
static bool libc_signal_install(const struct libc_signal *signal) {
    const struct kernel_action action = {
        .handler = signal_entry,
        .flags = signal->libcs.flags | SA_RESTART | SA_ONSTACK,
        .restorer = signal->libcs.restorer,
        .mask = UINT64_MAX, /* all signals, as for the real-time signal: sampler_set_action() */
    };
    return libc_signal_action(&action, NULL);
}

static bool is_handler(const struct kernel_action *action) {
    return (action->flags & SA_SIGINFO) && action->handler;
}

bool libc_signal_take(struct libc_signal *signal) {
    struct kernel_action present = {.handler = NULL};
    const uint32_t state = atomic_load(&signal->state);
    if (state != STATE_UNKNOWN)
        return state == STATE_TAKEN && !atomic_load(&signal->interrupted);
    if (cpu_timers_interrupt_calls()) {
        atomic_store(&signal->state, STATE_REFUSED);
        return false;
    }
    if (!libc_signal_action(NULL, &present) || !is_handler(&present))
        return false;
    if (present.handler != signal_entry) /* another thread may have just installed our handler */
        signal->libcs = present;
    const bool installed = libc_signal_install(signal);
    atomic_store(&signal->state, installed ? STATE_TAKEN : STATE_REFUSED);
    return installed;
}

bool libc_signal_pass_on(const struct libc_signal *signal, int number, siginfo_t *info,
                         void *context) {
    if (number != LIBC_SIGNAL || !signal->libcs.handler)
        return false;
    signal->libcs.handler(number, info, context);
    return true;
}
