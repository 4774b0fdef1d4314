/* Finishes the stacks that the walker in the handler could not walk to the end: the second stage of
 * unwinding, by libunwind, over a copy of the stack.
 *
 * libunwind never runs on a thread of the application and never touches its memory directly: its
 * accessors read the copied stack, and copies of the pages that hold the modules' unwind tables
 * (memory_pages.h), where an unmapped address is an error and not a crash.
 * Context: flush.
 */
#ifndef OTELPROF_SLOW_UNWIND_H
#define OTELPROF_SLOW_UNWIND_H

#include "harvest.h"

struct slow_unwinder;

/* Opens an unwinder for one harvest; `modules` must outlive it. NULL: no memory. */
struct slow_unwinder *slow_unwinder_open(const struct harvest_module *modules, size_t count);
void slow_unwinder_close(struct slow_unwinder *unwinder);

/* Walks the whole stack from the copied registers: stores the frames, in the form of
 * harvest_sample.frames, and the stack pointer of each frame, at most `max` of both. Returns true
 * if the walk ended at a frame without a caller, false if it stopped before that; `*count` frames
 * are valid in both cases. */
bool slow_unwind(struct slow_unwinder *unwinder, const struct stack_copy *copy, uint64_t *frames,
                 uint64_t *stack_pointers, uint32_t max, uint32_t *count);

#endif
