/* Where the kernel enters us.
 *
 * Sampling runs on a small stack of the thread's slot, not on the stack that was interrupted: of
 * that one the kernel's signal frame is all that a sample needs, however little is left of it (a
 * thread of PTHREAD_STACK_MIN, a coroutine of 8 KiB, an alternate stack of MINSIGSTKSZ). Every
 * signal is blocked meanwhile, so nothing else runs on that stack. A thread that nobody knows has
 * no slot, and no stack.
 * Async-signal-safe: yes.
 */
#include "sampler.h"

#include "arch_signal_entry.h"
#include "record/thread_table.h"

#include <stddef.h>

ARCH_DEFINE_SIGNAL_ENTRY(signal_entry, own_tls, offsetof(struct thread_local_state, thread),
                         offsetof(struct thread_local_state, sample_stack), sampler_on_signal,
                         sampler_pass_on)
