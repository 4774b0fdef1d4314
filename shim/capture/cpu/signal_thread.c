#include "signal_thread.h"

#include "arch_thread_base.h"
#include "kernel/first_page.h"
#include "record/own_signal_stacks.h"
#include "record/thread_table.h"
#include "sampler.h"
#include "unwind/stack_memory.h"

#include <stdint.h>
#include <sys/syscall.h>

IN_FIRST_PAGE static bool has_instruction;

void signal_thread_prepare(void) {
    has_instruction = arch_has_thread_base();
}

static bool may_be_libcs(uintptr_t base) {
    const uintptr_t variables = base + (uintptr_t)ARCH_THREAD_OFFSET(profiler_tls);
    return arch_is_control_block(base, memory_is_readable) && memory_is_readable(variables) &&
           memory_is_readable(variables + sizeof profiler_tls - 1);
}

__attribute__((used)) bool signal_thread_is_libcs(const ucontext_t *context) {
    const uintptr_t base = arch_thread_base(has_instruction);
    const struct own_signal_stack *const own = own_signal_stacks_of(context);
    if (!base)
        return true;
    return own ? own->thread_pointer == base : may_be_libcs(base);
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
    if (cpu_timers_sent(&sampler.timers, info))
        record_drop(sampler.recorder, DROP_FOREIGN_THREAD);
    else if (!libc_signal_pass_on(&sampler.libcs, number, info, context) && !may_be_held_back)
        signal_thread_end_by_default(number);
}
