/* Finishes the stacks that the walker in the handler could not express: the second stage of
 * unwinding, by libunwind, over a copy of the stack.
 *
 * libunwind never runs on a thread of the application and never touches its memory directly: its
 * accessors read the copied stack, and the modules' unwind tables through /proc/self/mem, where an
 * unmapped address is an error and not a crash.
 * Context: flush.
 */
#ifndef OTELPROF_SLOW_UNWIND_H
#define OTELPROF_SLOW_UNWIND_H

#include "harvest.h"

struct slow_unwinder;

/* `modules` must outlive the unwinder: open one per harvest. NULL: no memory, no /proc. */
struct slow_unwinder *slow_unwinder_open(const struct harvest_module *modules, size_t count);
void slow_unwinder_close(struct slow_unwinder *unwinder);

/* Gives the whole stack from the copied registers on, in the form of harvest_sample.frames, and the
 * stack pointer in each frame; room for `max` of both. Returns true if it ended at a frame without
 * caller, false if it had to stop before or `max` was reached; `*count` frames are valid either
 * way. */
bool slow_unwind(struct slow_unwinder *unwinder, const struct stack_copy *copy, uint64_t *frames,
                 uint64_t *stack_pointers, uint32_t max, uint32_t *count);

#endif
