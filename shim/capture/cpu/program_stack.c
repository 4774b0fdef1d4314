#include "program_stack.h"

#include "arch_machine.h"
#include "bare_syscall.h"
#include "kernel/signals_blocked.h"
#include "record/thread_table.h"
#include "unwind/stack_memory.h"

#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/syscall.h>

enum { LEAST_BYTES = 2048 }; /* The kernel's MINSIGSTKSZ: uapi/asm/signal.h */

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
    return mode != SS_DISABLE && wanted->ss_size < LEAST_BYTES ? ENOMEM : 0;
}

/* Stores the program's setting. A handler that comes in between finds no stack, never one stack
 * with the size of another. */
static void program_stack_store(struct own_signal_stack *stack, stack_t kept) {
    stack->programs.ss_size = 0;
    atomic_signal_fence(memory_order_seq_cst); /* only a handler of this thread reads it */
    stack->programs.ss_sp = kept.ss_sp;
    stack->programs.ss_flags = kept.ss_flags;
    atomic_signal_fence(memory_order_seq_cst);
    stack->programs.ss_size = kept.ss_size;
}

void program_stack_restore(struct own_signal_stack *stack, stack_t *frames, uintptr_t sp) {
    program_stack_commit(stack, sp);
    const bool sets = !program_stack_has(&stack->programs, sp) && error_of(frames) == 0;
    const stack_t kept = as_kept(frames);
    if (sets && (kept.ss_flags & STACK_DISARMS) && spans(&kept, sp)) {
        stack->pending = kept;
        atomic_store(&stack->pendings, atomic_load(&stack->commits) + 1);
    } else if (sets)
        program_stack_store(stack, kept);
    *frames = own_signal_stack_setting(stack);
}

void program_stack_commit(struct own_signal_stack *stack, uintptr_t sp) {
    /* a handler that runs in between counts up */
    const uint32_t pendings = atomic_load(&stack->pendings);
    if (pendings == atomic_load(&stack->commits) || spans(&stack->pending, sp))
        return;
    program_stack_store(stack, stack->pending);
    atomic_store(&stack->commits, pendings);
}

static void drop_pending(struct own_signal_stack *stack) {
    atomic_store(&stack->commits, atomic_load(&stack->pendings));
}

/* Returns the program's setting; reads it again if a handler has run meanwhile. */
static stack_t program_stack_of(struct own_signal_stack *stack, uintptr_t sp) {
    stack_t programs;
    uint32_t pendings;
    do {
        pendings = atomic_load(&stack->pendings);
        program_stack_commit(stack, sp);
        programs = stack->programs;
    } while (atomic_load(&stack->pendings) != pendings);
    return programs;
}

/* --- sigaltstack() --- */

/* Sets the stack for the program. First has the kernel set it, because only the kernel knows how
 * large the frames of this thread may be; then sets the profiler's stack again, with all signals
 * blocked in between. A thread that runs on the profiler's stack can set nothing in the kernel. */
static int program_stack_set(struct own_signal_stack *own, const stack_t *wanted, uintptr_t sp) {
    const stack_t ours = own_signal_stack_setting(own);
    signal_mask before = 0;
    if (own_signal_stack_has(own, sp)) {
        const int error = error_of(wanted);
        if (!error)
            own->programs = as_kept(wanted);
        return error;
    }
    const bool blocked = signals_block(&before);
    const int error = kernel_exchange(wanted, NULL) == 0 ? 0 : errno;
    if (!error) {
        program_stack_commit(own, sp);
        own->programs = as_kept(wanted);
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

int program_stack_exchange(const stack_t *wanted, stack_t *old, bool is_borrowed) {
    struct own_signal_stack *const own = profiler_tls.signal_stack;
    const uintptr_t sp = (uintptr_t)__builtin_frame_address(0);
    const int saved = errno;
    stack_t present = {.ss_flags = SS_DISABLE};
    if (kernel_exchange(NULL, &present) != 0)
        return -1;
    const bool is_ours = own_signal_stack_is(own, &present);
    if (wanted && !memory_range_is_readable((uintptr_t)wanted, sizeof *wanted))
        return fail_with(EFAULT);
    if (!is_ours && (is_borrowed || (!wanted && present.ss_size)))
        return kernel_exchange(wanted, old);
    const stack_t programs = is_ours ? program_stack_of(own, sp) : present;
    if (wanted && (is_ours ? program_stack_has(&programs, sp) : !!(present.ss_flags & SS_ONSTACK)))
        return fail_with(EPERM);
    if (wanted) {
        const int error = is_borrowed ? (kernel_exchange(wanted, NULL) == 0 ? 0 : errno)
                                      : program_stack_set(own, wanted, sp);
        if (error)
            return fail_with(error);
    }
    if (old && kernel_exchange(NULL, old) != 0) /* the kernel checks whether it can be written */
        return -1;
    if (old)
        *old = as_reported(&programs, sp);
    errno = saved;
    return 0;
}

/* --- the profiler's stack --- */

bool program_stack_hide(struct own_signal_stack *stack, bool is_first_of_process) {
    const stack_t ours = own_signal_stack_setting(stack);
    const int saved = errno;
    stack_t old = {.ss_flags = SS_DISABLE};
    stack->thread_pointer = thread_pointer(); /* stored before a signal may come on this stack */
    const bool is_set = kernel_exchange(&ours, &old) == 0;
    errno = saved;
    if (!is_set)
        return false;
    drop_pending(stack); /* left by a thread that had this stack before */
    own_signal_stack_note_wait(stack, 0, 0, NULL);
    if (old.ss_size)
        stack->programs = (stack_t){
            .ss_sp = old.ss_sp, .ss_flags = old.ss_flags & STACK_DISARMS, .ss_size = old.ss_size};
    else /* the kernel sets this flag for each thread but the first of a process */
        stack->programs = (stack_t){.ss_flags = is_first_of_process ? 0 : SS_DISABLE};
    profiler_tls.signal_stack = stack;
    return true;
}

void program_stack_heal(ucontext_t *context) {
    struct own_signal_stack *const own = profiler_tls.signal_stack;
    if (!own || context->uc_stack.ss_size)
        return;
    drop_pending(own);
    own->programs = (stack_t){.ss_flags = SS_DISABLE};
    context->uc_stack = own_signal_stack_setting(own);
}
