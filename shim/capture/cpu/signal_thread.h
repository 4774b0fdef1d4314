/* Identifies the thread that a signal handler runs on, without a read that can fault.
 *
 * Wine's 32-bit code, DynamoRIO and library operating systems change the register for thread-local
 * storage for a while: then no thread-local variable may be read, not even errno or the stack
 * protector's. The kernel still reports the thread's signal stack, which is one of the profiler's
 * (profiler_signal_stacks.h) and has a record of the register's usual value. A handler checks this
 * first.
 *
 * Context: a handler of the profiler. Async-signal-safe: yes. No function here uses a thread-local
 * variable, so the file is compiled without stack protector.
 */
#ifndef OTELPROF_SIGNAL_THREAD_H
#define OTELPROF_SIGNAL_THREAD_H

#include "arch_thread_base.h"
#include "record/profiler_signal_stacks.h"

#include <signal.h>
#include <stdbool.h>
#include <ucontext.h>

/* Set if the thread pointer can be read by an instruction. */
extern bool signal_thread_has_instruction;

/* Prepares the checks, before a handler is installed. Context: calm. */
void signal_thread_prepare(void);

/* Returns true if thread-local variables are libc's, or if the thread pointer is not known. For a
 * thread without a signal stack of the profiler, checks whether its control block has the form of
 * libc's. */
bool signal_thread_is_libcs(const ucontext_t *context);

/* Returns true if the calling thread is the stack's, as far as it is known without a system call.
 * It is inlined into a function that may not use the stack. */
static inline bool signal_thread_is_of(const struct profiler_signal_stack *own) {
    return !signal_thread_has_instruction ||
           arch_thread_base(true) ==
               atomic_load_explicit(&own->thread_pointer, memory_order_relaxed);
}

/* Returns the calling thread's own stack if `found` is another thread's: the program continues a
 * handler on another thread than the one that it began on (user threads), and its return gives this
 * thread the other's stack. Otherwise, and if it is unknown, returns `found`. Makes no system
 * call. */
struct profiler_signal_stack *signal_thread_stack(struct profiler_signal_stack *found);

/* Gives the signal its default action, and raises it again: it is pending until the handler
 * returns. */
void signal_thread_end_by_default(int number);

/* Handles the sampling signal on a thread whose variables are not libc's: drops and counts an
 * expiry, passes any other signal on. If the thread has got another thread's stack, the kernel gets
 * its own back as the handler returns. */
void signal_thread_pass_foreign(int number, siginfo_t *info, void *context);

#endif
