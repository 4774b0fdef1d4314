/* Merges the walker's unfinished stack, which has an interpreter's frames, with libunwind's
 * complete native one: interpreted frames replace the native ones that run them.
 *
 * The walker has put the interpreted frames that it met in their places, up to where it stopped;
 * after that the others follow in groups, each with its place on the native stack (FRAME_PLACE).
 * libunwind knows all native frames, and no interpreter. So up to there the result is the walker's
 * stack, as far as the two agree; from there on it is the native one, and each group replaces the
 * frame whose part of the stack contains its place. Context: flush.
 */
#ifndef OTELPROF_INTERPRETED_STACK_H
#define OTELPROF_INTERPRETED_STACK_H

#include "frame.h"

#include <stdint.h>

struct native_stack {
    const uint64_t *frames;
    const uint64_t *stack_pointers; /* in each frame */
    uint32_t count;
};

/* Writes at most `max` frames and returns their number; 0 if the two are not the same stack. */
uint32_t interpreted_stack(const uint64_t *walked, uint32_t walked_count,
                           const struct native_stack *native, uint64_t *frames, uint32_t max);

#endif
