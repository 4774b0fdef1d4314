/* Decides which frame ends a stack: the one rule behind `otelprof.stack.truncated`.
 *
 * A stack is complete if the walk came to a frame that has no caller. These frames are:
 *  1. a frame whose unwind tables mark it as the last (RULE_END): _start of the main thread,
 *     libc's clone of every other thread, makecontext's __start_context;
 *  2. a frame whose return address is zero: fibres that are laid out with a zero above them;
 *  3. a frame of code that keeps frame pointers, if the frame pointer is zero. The psABIs mark the
 *     deepest frame by a zero, and so does Go on the stacks of goroutines and of its scheduler;
 *  4. a frame that returns to where no call was made, on a stack that is not the thread's own: to a
 *     function's first instruction (stacks laid out for makecontext, libco), or right behind an
 *     indirect jump that no table describes (boost.context's trampoline jumps into a fibre's
 *     function; PHP's fibres and Folly's have the same);
 *  5. a frame of the function that runs first on a greenlet's part of the stack. Greenlets share
 *     one native stack, and save and restore their own parts of it: the frames further out belong
 *     to the code that used the stack last. The function is known by two names that its file
 *     defines.
 *
 * If the walk has to stop at any other frame, the stack is truncated. A stack that is cut at
 * OTEL_PROFILER_MAX_STACK_DEPTH is neither complete nor truncated; it is marked as cut.
 */
#ifndef OTELPROF_STACK_END_H
#define OTELPROF_STACK_END_H

#include "modules.h"

#include <stdbool.h>
#include <stdint.h>

/* Implements point 3: returns true if `fp`, the frame pointer of a frame or the frame pointer saved
 * in it, marks the last frame. */
static inline bool stack_end_is_marked(uintptr_t fp) {
    return fp == 0;
}

/* Implements point 4: returns true if a stack that the program laid out begins with `address`,
 * which no call has pushed. `own_unloads`: as for modules_open(). Context: any. Async-signal-safe:
 * yes. */
bool stack_end_is_laid_out(struct modules *modules, uintptr_t address, uint32_t own_unloads);

/* Implements point 5: returns true if `pc` is in that function. Reads symbols only of an object
 * whose file is named _greenlet.*. Returns false before glibc 2.35. Context: any, between
 * modules_open() and modules_close(). Async-signal-safe: yes. */
bool stack_end_is_greenlets(const struct modules *modules, const struct cfi_tables *tables,
                            uintptr_t pc);

#endif
