#include "signal_thread.h"

#include "arch_signal_frame.h"
#include "kernel/first_page.h"
#include "record/thread_table.h"
#include "sampler.h"
#include "seccomp_state.h"
#include "unwind/stack_memory.h"

#include <stdint.h>
#include <sys/syscall.h>

IN_FIRST_PAGE bool signal_thread_has_instruction;

void signal_thread_prepare(void) {
    signal_thread_has_instruction = arch_has_thread_base();
}

static bool may_be_libcs(uintptr_t base) {
    const uintptr_t variables = base + (uintptr_t)ARCH_THREAD_OFFSET(profiler_tls);
    return arch_is_control_block(base, memory_is_readable) && memory_is_readable(variables) &&
           memory_is_readable(variables + sizeof profiler_tls - 1);
}

__attribute__((used)) bool signal_thread_is_libcs(const ucontext_t *context) {
    const uintptr_t base = arch_thread_base(signal_thread_has_instruction);
    const struct profiler_signal_stack *const own = profiler_signal_stacks_of(context);
    if (!base)
        return true;
    return own ? own->thread_pointer == base : may_be_libcs(base);
}

/* Reads no thread-local variable unless the thread pointer is one that libc has given to a thread
 * with a stack. Many threads may have had it one after the other. */
struct profiler_signal_stack *signal_thread_stack(struct profiler_signal_stack *found) {
    if (signal_thread_is_of(found))
        return found;
    const uintptr_t base = arch_thread_base(true);
    if (!base || !profiler_signal_stacks_know(base))
        return found;
    const struct thread_local_state *const state =
        (const void *)(base + (uintptr_t)ARCH_THREAD_OFFSET(profiler_tls));
    struct profiler_signal_stack *const own = state->signal_stack;
    return own && profiler_signal_stacks_include(own) && signal_thread_is_of(own) ? own : found;
}

/* Sets the thread's own stack at once, at a stack pointer that is not on the other's: since Linux
 * 6.12 rt_sigreturn refuses while this frame is on the present stack. */
static void give_own_stack(ucontext_t *context) {
    struct profiler_signal_stack *const found = profiler_signal_stacks_of(context);
    struct profiler_signal_stack *const own = found ? signal_thread_stack(found) : NULL;
    if (own == found)
        return;
    stack_t setting = profiler_signal_stack_setting(own, own->latest);
    if (!seccomp_is_filtered())
        (void)arch_system_call_at(own->high, SYS_sigaltstack, (long)&setting, 0);
    context->uc_stack = setting;
}

void signal_thread_end_by_default(int number) {
    const struct kernel_action standard = {.handler = NULL};
    const long process = arch_system_call(SYS_getpid, 0, 0, 0, 0, 0, 0);
    const long thread = arch_system_call(SYS_gettid, 0, 0, 0, 0, 0, 0);
    (void)arch_system_call(SYS_rt_sigaction, number, (long)&standard, 0, sizeof standard.mask, 0,
                           0);
    (void)arch_system_call(SYS_tgkill, process, thread, number, 0, 0, 0);
}

/* If a tracer was found, treats every signal from a process as an expiry that the tracer has held
 * back (tracer.h), because the tracer's id cannot be read here. */
__attribute__((used)) void signal_thread_pass_foreign(int number, siginfo_t *info, void *context) {
    const bool may_be_held_back =
        sampler.traced && (info->si_code == SI_USER || info->si_code == SI_KERNEL);
    if (cpu_timers_sent(&sampler.timers, info)) {
        record_drop(sampler.recorder, DROP_FOREIGN_THREAD);
        give_own_stack(context);
    } else if (!libc_signal_pass_on(&sampler.libcs, number, info, context) && !may_be_held_back)
        signal_thread_end_by_default(number);
}
