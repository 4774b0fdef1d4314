#include "arch_context.h"
#include "kernel/signals_blocked.h"
#include "kernel/wait.h"
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

/* Rounds of wait.h, of 50 us at least. One thread judges in some microseconds. */
enum { TURN_ROUNDS = 20000 };

/* Pairs with the store at the end of sampler_judge_signal_stack(). */
static bool take_turn(void *turn) {
    return !atomic_exchange((_Atomic bool *)turn, true);
}

static bool begin_move(void *s) {
    return sampler_begin_move(s);
}

/* No alternate stack is used by our signal any more, unless the kernel refuses. */
static void stay_in_place(struct sampler *s) {
    struct sigaction present;
    if (!wait_for_rounds(begin_move, s, TURN_ROUNDS))
        return;
    const int number = atomic_load(&s->timers.signal);
    const bool ours = number && next_sigaction(number, NULL, &present) == 0 &&
                      present.sa_sigaction == signal_entry;
    if (!ours || sampler_set_action(number, true)) {
        atomic_store(&s->in_place, true);
        libc_signal_place(&s->libcs, true);
    }
    sampler_end_move(s);
}

static bool is_same(struct stack_range a, struct stack_range b) {
    return a.low == b.low && a.high == b.high;
}

/* The caller has the turn: between the note and the decision no other thread comes to a stack, and
 * the next thread finds what this one has decided. */
static enum signal_stack_use judge_in_turn(struct thread_state *thread, struct stack_range stack) {
    struct sampler *const s = &sampler;
    const struct signal_stack_sharing sharing =
        signal_stacks_note(s->recorder->threads, thread, stack);
    if (!fits_on(stack.high - stack.low))
        return SIGNAL_STACK_SMALL;
    if (atomic_load(&thread->by_libc_signal) && libc_signal_is_in_place(&s->libcs))
        return SIGNAL_STACK_SHARED;
    if (sharing.shared && !sharing.others && !atomic_load(&s->in_place))
        stay_in_place(s);
    if (!atomic_load(&s->in_place))
        return sharing.used ? SIGNAL_STACK_SHARED : SIGNAL_STACK_FINE;
    if (!sharing.shared && !is_same(stack, s->shared_stack))
        return SIGNAL_STACK_SHARED;
    s->shared_stack = stack; /* the others may be gone when the next thread comes to it */
    return SIGNAL_STACK_FINE;
}

enum signal_stack_use sampler_judge_signal_stack(struct thread_state *thread,
                                                 struct stack_range stack) {
    struct sampler *const s = &sampler;
    enum signal_stack_use use = SIGNAL_STACK_SHARED;
    signal_mask before = 0;
    if (!stack.high) {
        (void)signal_stacks_note(s->recorder->threads, thread, stack);
        return SIGNAL_STACK_FINE;
    }
    /* A handler that calls sigaltstack() would wait for the thread that it interrupts. */
    const int saved = errno;
    const bool blocked = signals_block(&before);
    if (wait_for_rounds(take_turn, &s->judging, TURN_ROUNDS)) {
        use = judge_in_turn(thread, stack);
        atomic_store(&thread->signal_stack_used, use == SIGNAL_STACK_FINE);
        atomic_store(&s->judging, false); /* pairs with the exchange in take_turn() */
    } else
        (void)signal_stacks_note(s->recorder->threads, thread, stack);
    if (blocked)
        signals_restore(&before);
    errno = saved;
    return use;
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
