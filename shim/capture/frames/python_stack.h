/* The functions of Python that one thread runs, in groups: each run of the interpreter's loop on
 * the native stack has its own.
 *
 * An address gives a group's place on the native stack: up to 3.12 that of the _PyCFrame, from 3.13
 * on that of the entry frame, which are variables of the loop's own C function. So no symbol is
 * needed to put them between native frames, and no rule about how the interpreter was compiled. The
 * thread may be interrupted anywhere, between two stores of a push or a pop. A frame is listed if
 * it can be read, if it is a function's (its code object is one by its type), and if the next group
 * lies higher on the native stack than the one before. A group is listed as a whole: where one of
 * its frames is in doubt, or cannot be remembered, the native frame stays.
 */
#ifndef OTELPROF_PYTHON_STACK_H
#define OTELPROF_PYTHON_STACK_H

#include "python.h"
#include "python_reader.h"
#include "unwind/unwind.h"

#include <stdbool.h>
#include <stdint.h>

struct python_stack {
    struct interpreter_frames frames; /* first: it is what the walker knows */
    const struct python *python;
    struct python_reader reader;
    struct stack_range native; /* range that the next group may lie in */
    uintptr_t cframe;          /* up to 3.12: of the present group */
    uintptr_t frame;           /* the next one of the present group */
    uint32_t doubts;           /* out: groups that could not be listed */
};

/* Begins with the thread state at `thread_state`, which is the thread's, in an interpreter that is
 * held; the reader's `of_another` and `known` are set before, all else is 0. `native`: from the
 * stack pointer to the end of the stack. Then unwind.interpreter = &stack->frames. Context: signal;
 * or the helper, of another thread. Async-signal-safe: yes. Cost: some 100 ns for each frame. */
void python_stack_begin(struct python_stack *stack, const struct python *python,
                        uintptr_t thread_state, struct stack_range native);

#endif
