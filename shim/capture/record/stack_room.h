/* Checks that the stack of the calling thread has room for the profiler's work on it.
 *
 * An allocation is recorded on the program's own stack, with signals blocked. If that stack ended
 * in the middle of the work, SIGSEGV would come there: a handler of the program that leaves the
 * overflow by a jump would find the signals still blocked. So work that needs more stack than a
 * small function does not begin at the end of a stack. Where the known end is far away there is no
 * call; the pages that a runtime protects near the end of its stacks, and the ends of fibres'
 * stacks, are known to the kernel alone. Context: any. Async-signal-safe: yes. errno is preserved.
 */
#ifndef OTELPROF_STACK_ROOM_H
#define OTELPROF_STACK_ROOM_H

#include "readable_memory.h"
#include "thread_table.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    /* most bytes that the work uses below its first frame: test_stack_use.py. A guard is as large
     * or larger, so that no end is stepped over */
    WORK_STACK_BYTES = 4096,
    /* larger than the protected pages of runtimes: sbcl's are three of 32 KiB */
    STACK_END_IS_FAR_BYTES = 256 << 10,
};

/* Returns whether WORK_STACK_BYTES below the caller's frame can be read, or the known end of the
 * stack is far away. */
static inline bool stack_has_room(void) {
    const uintptr_t here = (uintptr_t)__builtin_frame_address(0);
    const struct stack_range stack = profiler_tls.stack;
    if (stack_range_has(stack, here) && here - stack.low >= STACK_END_IS_FAR_BYTES)
        return true;
    return word_is_readable(here - WORK_STACK_BYTES);
}

#endif
