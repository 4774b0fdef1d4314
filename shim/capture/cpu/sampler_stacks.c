#include "arch_context.h"
#include "sampler_parts.h"
#include "signal_stacks.h"
#include "symbols/next.h"

#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

static bool fits_on(size_t size) {
    size_t needed = atomic_load(&sampler.frame_bytes);
    if (!needed) { /* asking the processor is slow in a virtual machine */
        needed = signal_frame_bytes();
        atomic_store(&sampler.frame_bytes, needed);
    }
    return size >= needed;
}

/* true: no alternate stack is used by our signal any more. */
static bool stay_in_place(void) {
    struct sampler *const s = &sampler;
    struct sigaction present;
    sampler_wait_stable();
    if (atomic_load(&s->in_place) || !sampler_begin_move(s))
        return atomic_load(&s->in_place);
    const int number = atomic_load(&s->timers.signal);
    const bool ours = number && next_sigaction(number, NULL, &present) == 0 &&
                      present.sa_sigaction == signal_entry;
    if (!ours || sampler_set_action(number, true)) {
        atomic_store(&s->in_place, true);
        libc_signal_place(&s->libcs, true);
    }
    sampler_end_move(s);
    return atomic_load(&s->in_place);
}

enum signal_stack_use sampler_judge_signal_stack(struct thread_state *thread,
                                                 struct stack_range stack) {
    const struct signal_stack_sharing sharing =
        signal_stacks_note(sampler.recorder->threads, thread, stack);
    if (!stack.high)
        return SIGNAL_STACK_FINE;
    if (!fits_on(stack.high - stack.low))
        return SIGNAL_STACK_SMALL;
    if (atomic_load(&thread->by_libc_signal) && libc_signal_is_in_place(&sampler.libcs))
        return SIGNAL_STACK_SHARED;
    if (sharing.shared && !sharing.others)
        return stay_in_place() ? SIGNAL_STACK_FINE : SIGNAL_STACK_SHARED;
    return sharing.shared == atomic_load(&sampler.in_place) ? SIGNAL_STACK_FINE
                                                            : SIGNAL_STACK_SHARED;
}

enum signal_stack_use sampler_judge_present_signal_stack(struct thread_state *thread) {
    stack_t stack;
    const int saved = errno;
    const bool told = syscall(SYS_sigaltstack, NULL, &stack) == 0;
    errno = saved;
    return told ? sampler_judge_signal_stack(thread, signal_stack_range(&stack))
                : SIGNAL_STACK_FINE;
}

void sampler_count_signal_stack(struct thread_state *thread, enum signal_stack_use use) {
    if (use != SIGNAL_STACK_FINE)
        thread_count_drop(thread, use == SIGNAL_STACK_SMALL ? DROP_SMALL_SIGNAL_STACK
                                                            : DROP_SHARED_SIGNAL_STACK);
}

void sampler_avoid_signal_stack(struct thread_state *thread, enum signal_stack_use use) {
    const bool avoid = use != SIGNAL_STACK_FINE;
    if (avoid == thread->signals_given_up)
        return;
    thread->signals_given_up = avoid;
    sampler_count_signal_stack(thread, use);
    if (avoid)
        cpu_timers_pause(thread);
    else
        cpu_timers_start(&sampler.timers, thread);
}
