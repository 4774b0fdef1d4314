#include "program_stack.h"

#include "arch_machine.h"
#include "arch_signal_frame.h"
#include "bare_syscall.h"
#include "kernel/signals_blocked.h"
#include "record/thread_table.h"
#include "unwind/stack_memory.h"

#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/syscall.h>


static int kernel_exchange(const stack_t *wanted, stack_t *old) {
    return (int)bare_syscall(SYS_sigaltstack, (long)wanted, (long)old, 0, 0, 0, 0);
}

/* --- the kernel's rules --- */

static bool spans(const stack_t *stack, uintptr_t sp) {
    const uintptr_t low = (uintptr_t)stack->ss_sp;
    return sp > low && sp - low <= stack->ss_size;
}

bool program_stack_has(const stack_t *stack, uintptr_t sp) {
    return !(stack->ss_flags & STACK_DISARMS) && spans(stack, sp);
}

/* Returns the stack as sigaltstack() reports it. */
static stack_t as_reported(const stack_t *stack, uintptr_t sp) {
    stack_t reported = *stack;
    reported.ss_flags = stack->ss_flags & STACK_DISARMS;
    if (!stack->ss_size)
        reported.ss_flags |= SS_DISABLE;
    else if (program_stack_has(stack, sp))
        reported.ss_flags |= SS_ONSTACK;
    return reported;
}

/* Returns the stack as the kernel stores it. */
static stack_t as_kept(const stack_t *wanted) {
    if ((wanted->ss_flags & ~STACK_DISARMS) == SS_DISABLE)
        return (stack_t){.ss_flags = wanted->ss_flags};
    return (stack_t){
        .ss_sp = wanted->ss_sp, .ss_flags = wanted->ss_flags, .ss_size = wanted->ss_size};
}

/* Returns 0, or the error of sigaltstack() for this stack. */
static int error_of(const stack_t *wanted) {
    const int mode = wanted->ss_flags & ~STACK_DISARMS;
    if (mode != SS_DISABLE && mode != SS_ONSTACK && mode != 0)
        return EINVAL;
    return mode != SS_DISABLE && wanted->ss_size < ARCH_LEAST_STACK_BYTES ? ENOMEM : 0;
}

/* --- the program's settings --- */

/* Set once all handlers have entries: a frame has the program's setting, not one of ours. */
static _Atomic bool frames_have_settings;

/* Stores a setting in steps: a handler that comes in between finds no stack, never a stack with the
 * size of another. The fences keep the order of the stores for a handler of this thread alone. */
static void program_stack_store(stack_t *place, stack_t kept) {
    place->ss_size = 0;
    atomic_signal_fence(memory_order_seq_cst);
    place->ss_sp = kept.ss_sp;
    place->ss_flags = kept.ss_flags;
    atomic_signal_fence(memory_order_seq_cst);
    place->ss_size = kept.ss_size;
}

static bool stack_settings_are_equal(const stack_t *a, const stack_t *b) {
    return a->ss_sp == b->ss_sp && a->ss_flags == b->ss_flags && a->ss_size == b->ss_size;
}

/* Returns the place after the place that was replaced last, but skips the first and the present
 * place. */
static uint32_t place_to_replace(struct profiler_signal_stack *stack, uint32_t present) {
    do
        stack->replaced = (uint8_t)(stack->replaced % (PROGRAM_SETTINGS - 1) + 1);
    while (stack->replaced == present);
    return stack->replaced;
}

/* Returns the place that has the setting; if none has it, stores it in a place. */
static uint32_t stack_setting_place(struct profiler_signal_stack *stack, uint32_t present,
                                    stack_t kept) {
    uint32_t place = 0;
    while (place < PROGRAM_SETTINGS && !stack_settings_are_equal(&stack->settings[place], &kept))
        place++;
    if (place == PROGRAM_SETTINGS) {
        place = place_to_replace(stack, present);
        program_stack_store(&stack->settings[place], kept);
    }
    stack->latest = (uint8_t)place;
    return place;
}

/* Returns the place for a setting by which sigaltstack() replaces the present one, `kernels`. If
 * the first place stands for a later setting, handlers that have begun since restore that setting,
 * unless their entries have stored it in their frames. */
static uint32_t place_for_next(struct profiler_signal_stack *stack, const stack_t *kernels,
                               stack_t kept) {
    const uint32_t present =
        profiler_signal_stack_is(stack, kernels) ? profiler_signal_stack_place(stack, kernels) : 0;
    if (present && kernels->ss_size == stack->high - stack->low &&
        !atomic_load(&frames_have_settings)) {
        program_stack_store(&stack->settings[0], stack->settings[present]);
        stack->first_stands_for_latest = false;
    }
    return stack_setting_place(stack, present, kept);
}

/* Returns the program's setting. If the kernel's setting is not ours, the program has set it by a
 * system call of its own. */
static stack_t program_stack_of(const struct profiler_signal_stack *stack, const stack_t *kernels) {
    return profiler_signal_stack_is(stack, kernels)
               ? stack->settings[profiler_signal_stack_place(stack, kernels)]
               : *kernels;
}

int program_stack_flags(const struct profiler_signal_stack *stack, const stack_t *kernels) {
    return stack ? program_stack_of(stack, kernels).ss_flags : kernels->ss_flags;
}

stack_t program_stack_disabled(struct profiler_signal_stack *stack) {
    const stack_t disabled = {.ss_flags = SS_DISABLE};
    return profiler_signal_stack_setting(stack,
                                         stack_setting_place(stack, stack->latest, disabled));
}

bool program_stack_is_first(const struct profiler_signal_stack *stack) {
    return stack->first_stands_for_latest && stack->latest == 0;
}

void program_stack_is_in_frames(void) {
    atomic_store(&frames_have_settings, true);
}

bool program_stack_is_left(const struct profiler_signal_stack *stack, uintptr_t sp,
                           uintptr_t next_sp) {
    stack_t present = {.ss_flags = SS_DISABLE};
    uint32_t i = 0;
    while (i < PROGRAM_SETTINGS && !program_stack_has(&stack->settings[i], sp))
        i++;
    if (i == PROGRAM_SETTINGS || kernel_exchange(NULL, &present) != 0)
        return false;
    const stack_t programs = program_stack_of(stack, &present);
    return program_stack_has(&programs, sp) && !program_stack_has(&programs, next_sp);
}

/* Assumes that the latest setting is the present one, because a system call may be forbidden
 * here. */
void program_stack_restore(struct profiler_signal_stack *stack, stack_t *frames, uintptr_t sp) {
    const bool stays =
        error_of(frames) != 0 || program_stack_has(&stack->settings[stack->latest], sp);
    const uint32_t place =
        stays ? stack->latest : stack_setting_place(stack, stack->latest, as_kept(frames));
    *frames = profiler_signal_stack_setting(stack, place);
}

/* --- sigaltstack() --- */

/* Has the kernel set the stack, and returns its error or 0. While a thread runs on its alternate
 * stack, the kernel lets it set no other. So if this code may run on that stack, it gives the
 * kernel a stack that has the same flags and size, but on which no code can run. */
static int error_of_kernel(const stack_t *wanted) {
    enum { FRAMES_BYTES = 4096 }; /* more than the frames of the functions here */
    const uintptr_t from_low = (uintptr_t)__builtin_frame_address(0) - (uintptr_t)wanted->ss_sp;
    stack_t tried = *wanted;
    if (from_low <= FRAMES_BYTES || from_low - FRAMES_BYTES <= wanted->ss_size)
        tried.ss_sp = (void *)UINTPTR_MAX;
    return kernel_exchange(&tried, NULL) == 0 ? 0 : errno;
}

/* Sets the stack for the program. First has the kernel set it, because only the kernel knows how
 * large the frames of this thread may be; then sets the profiler's stack again, with all signals
 * blocked in between. A thread that runs on the profiler's stack can set nothing in the kernel,
 * unless that stack is disarmed. */
static int program_stack_set(struct profiler_signal_stack *own, const stack_t *wanted,
                             const stack_t *present, uintptr_t sp) {
    signal_mask before = 0;
    if (profiler_signal_stack_has(own, sp) && profiler_signal_stack_is(own, present)) {
        const int error = error_of(wanted);
        if (!error)
            program_stack_store(&own->settings[profiler_signal_stack_place(own, present)],
                                as_kept(wanted));
        return error;
    }
    const bool blocked = signals_block(&before);
    const int error = error_of_kernel(wanted);
    if (!error) {
        stack_t ours =
            profiler_signal_stack_setting(own, place_for_next(own, present, as_kept(wanted)));
        /* otherwise the next frame would begin at the stack's top */
        if (profiler_signal_stack_has(own, sp))
            ours.ss_flags &= ~STACK_DISARMS;
        (void)kernel_exchange(&ours, NULL);
    }
    if (blocked)
        signals_restore(&before);
    return error;
}

static int fail_with(int error) {
    errno = error;
    return -1;
}

int program_stack_exchange(const stack_t *wanted, stack_t *old, uintptr_t sp, bool is_borrowed) {
    struct profiler_signal_stack *const own = profiler_tls.signal_stack;
    const int saved = errno;
    stack_t present = {.ss_flags = SS_DISABLE};
    if (kernel_exchange(NULL, &present) != 0)
        return -1;
    const bool is_ours = profiler_signal_stack_is(own, &present);
    if (is_ours)
        own->latest = (uint8_t)profiler_signal_stack_place(own, &present);
    if (wanted && !memory_range_is_readable((uintptr_t)wanted, sizeof *wanted))
        return fail_with(EFAULT);
    if (!is_ours && (is_borrowed || (!wanted && present.ss_size)))
        return kernel_exchange(wanted, old);
    const stack_t programs = program_stack_of(own, &present);
    if (wanted && (is_ours ? program_stack_has(&programs, sp) : !!(present.ss_flags & SS_ONSTACK)))
        return fail_with(EPERM);
    if (wanted) {
        const int error = is_borrowed ? (kernel_exchange(wanted, NULL) == 0 ? 0 : errno)
                                      : program_stack_set(own, wanted, &present, sp);
        if (error)
            return fail_with(error);
    }
    /* lets the kernel check whether `old` can be written */
    if (old && kernel_exchange(NULL, old) != 0)
        return -1;
    if (old)
        *old = as_reported(&programs, sp);
    errno = saved;
    return 0;
}

/* --- the profiler's stack --- */

bool program_stack_hide(struct profiler_signal_stack *stack, bool is_first_of_process) {
    const int saved = errno;
    stack_t old = {.ss_flags = SS_DISABLE};
    /* stored before a signal can use the stack. The kernel begins with flags of 0 on the first
     * thread of a process, and with SS_DISABLE on other threads */
    stack->thread_pointer = thread_pointer();
    stack->settings[0] = (stack_t){.ss_flags = is_first_of_process ? 0 : SS_DISABLE};
    stack->first_stands_for_latest = is_first_of_process;
    stack->latest = 0;
    stack_t ours = profiler_signal_stack_setting(stack, 0);
    const bool is_set = kernel_exchange(&ours, &old) == 0;
    errno = saved;
    if (!is_set)
        return false;
    profiler_signal_stack_note_wait(stack, 0, 0, NULL);
    if (old.ss_size) {
        stack->first_stands_for_latest = false;
        old.ss_flags &= STACK_DISARMS;
        program_stack_store(&stack->settings[0], old);
        ours = profiler_signal_stack_setting(stack, 0);
        if (old.ss_flags)
            (void)kernel_exchange(&ours, NULL);
    }
    profiler_tls.signal_stack = stack;
    return true;
}

void program_stack_heal(ucontext_t *context) {
    struct profiler_signal_stack *const own = profiler_tls.signal_stack;
    if (own && !context->uc_stack.ss_size &&
        !profiler_signal_stack_has(own, arch_interrupted_sp(context)))
        context->uc_stack = program_stack_disabled(own);
}
