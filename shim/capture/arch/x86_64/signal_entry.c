/* Where the kernel enters us: the signal handler's first and last instructions.
 *
 * Sampling runs on a small stack of the thread's slot, not on the stack that was interrupted: of
 * that one the kernel's signal frame is all that a sample needs, however little is left of it (a
 * thread of PTHREAD_STACK_MIN, a coroutine of 8 KiB, an alternate stack of MINSIGSTKSZ). Every
 * signal is blocked meanwhile, so nothing else runs on that stack; and no register need be kept,
 * because the kernel restores them all.
 * Async-signal-safe: yes.
 */
#include "cpu/sampler.h"

#include "record/thread_table.h"

#include <stddef.h>

__attribute__((naked)) void signal_entry(__attribute__((unused)) int number,
                                         __attribute__((unused)) siginfo_t *info,
                                         __attribute__((unused)) void *context) {
    __asm__ volatile("movq own_tls@gottpoff(%%rip), %%rax\n\t"
                     "movq %%fs:%c0(%%rax), %%rcx\n\t"
                     "testq %%rcx, %%rcx\n\t" /* no slot, no stack: a thread that nobody knows */
                     "jz sampler_pass_on\n\t"
                     "movq %%rsp, %%rbx\n\t"
                     ".cfi_def_cfa_register %%rbx\n\t"
                     "movq %%fs:%c1(%%rax), %%rsp\n\t"
                     "movl %%edi, %%r12d\n\t"
                     "movq %%rsi, %%r13\n\t"
                     "movq %%rdx, %%r14\n\t"
                     "call sampler_on_signal\n\t"
                     "movq %%rbx, %%rsp\n\t"
                     ".cfi_def_cfa_register %%rsp\n\t"
                     "testb %%al, %%al\n\t"
                     "jz 1f\n\t"
                     "ret\n"
                     "1:\n\t"
                     "movl %%r12d, %%edi\n\t"
                     "movq %%r13, %%rsi\n\t"
                     "movq %%r14, %%rdx\n\t"
                     "jmp sampler_pass_on"
                     :
                     : "i"(offsetof(struct thread_local_state, thread)),
                       "i"(offsetof(struct thread_local_state, sample_stack)));
}
