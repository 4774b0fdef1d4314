/* A stack that the walker has left unfinished and libunwind has finished, with an interpreter's
 * frames in the places of the native ones that run them.
 *
 * The walker has put those that it came by in their places, up to where it could not go on; behind
 * that the others follow, each group with its place on the native stack (FRAME_PLACE). libunwind
 * knows all native frames, and nothing of interpreters. So up to there the walker's stack is kept,
 * as far as the two agree; from there on the native one, with each group for the frame in whose
 * part of the stack its place lies. Context: flush.
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

/* Writes at most `max` frames and returns how many; 0: the two are not the same stack. */
uint32_t interpreted_stack(const uint64_t *walked, uint32_t walked_count,
                           const struct native_stack *native, uint64_t *frames, uint32_t max);

#endif
