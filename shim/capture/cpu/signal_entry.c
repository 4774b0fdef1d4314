/* Implements the kernel's entry into our signal handler.
 *
 * The kernel writes the signal's frame onto the thread's signal stack (profiler_signal_stacks.h),
 * and sampling continues there. If the program has set an alternate stack by a system call of its
 * own, the frame is on that stack; sampling then changes to ours, because the program's may have
 * only MINSIGSTKSZ bytes. Every signal is blocked meanwhile. A thread that is not known to us has
 * no stack of ours. No thread-local variable is read before it is known to be libc's
 * (signal_thread.h). Async-signal-safe: yes. */
#include "sampler.h"

#include "arch_signal_entry.h"
#include "record/profiler_signal_stacks.h"
#include "record/thread_table.h"
#include "signal_thread.h"

#include <stddef.h>

ARCH_DEFINE_SIGNAL_ENTRY(signal_entry, signal_thread_is_libcs, signal_thread_pass_foreign,
                         profiler_tls, offsetof(struct thread_local_state, thread),
                         offsetof(struct thread_local_state, signal_stack),
                         offsetof(struct profiler_signal_stack, high), PROFILER_SIGNAL_STACK_BYTES,
                         sampler_on_signal, sampler_pass_on)
