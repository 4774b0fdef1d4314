/* Merges the walker's unfinished stack, which has an interpreter's frames, with libunwind's
 * complete native one: interpreted frames replace the native ones that run them.
 *
 * Up to the frame where it stopped, the walker has put interpreted frames in their places; the
 * remaining interpreted frames follow in groups, each with its place on the native stack
 * (FRAME_PLACE). libunwind lists all native frames, but no interpreted ones. So the result is the
 * walker's stack up to that frame, as far as the two stacks agree. Beyond it the result is the
 * native stack, in which each group replaces the frame whose part of the stack contains the group's
 * place. Context: flush.
 */
#ifndef OTELPROF_INTERPRETED_STACK_H
#define OTELPROF_INTERPRETED_STACK_H

#include "frame.h"

#include <stdint.h>

struct native_stack {
    const uint64_t *frames;
    const uint64_t *stack_pointers; /* stack pointer of each frame */
    uint32_t count;
};

/* Writes at most `max` frames and returns their number; 0 if the walker's frames before the first
 * group do not agree with the native stack, or end with an interpreted frame. */
uint32_t interpreted_stack(const uint64_t *walked, uint32_t walked_count,
                           const struct native_stack *native, uint64_t *frames, uint32_t max);

#endif
