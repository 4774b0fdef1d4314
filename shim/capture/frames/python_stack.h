/* Lists the Python functions that one thread runs, in groups: one for each run of the interpreter's
 * loop on the native stack.
 *
 * A variable of the loop's C function shows where a group belongs on the native stack: the
 * _PyCFrame up to 3.12, the entry frame from 3.13 on. So the groups can be put between native
 * frames without the interpreter's symbols, whatever options compiled the interpreter. The thread
 * may be interrupted anywhere, between two stores of a push or a pop. A frame is listed if it can
 * be read and belongs to a function (the type of its code object shows that), and if each group
 * lies higher on the native stack than the one before. A group is listed as a whole: if one of its
 * frames is in doubt, or gets no number, the native frame of the loop is listed instead.
 */
#ifndef OTELPROF_PYTHON_STACK_H
#define OTELPROF_PYTHON_STACK_H

#include "python.h"
#include "python_reader.h"
#include "unwind/unwind.h"

#include <stdbool.h>
#include <stdint.h>

struct python_stack {
    /* must be first: the walker accesses the struct by this member */
    struct interpreter_frames frames;
    const struct python *python;
    struct python_reader reader;
    struct stack_range native; /* the range in which the next group may lie */
    uintptr_t cframe;          /* up to 3.12: the current group's _PyCFrame */
    uintptr_t frame;           /* the next frame of the current group */
    uint32_t doubts;           /* result: number of groups that could not be listed */
};

/* Starts a walk at the PyThreadState at `thread_state`. The caller holds the interpreter, has set
 * the reader's `of_another` and `known`, and has zeroed the rest of `stack`. `native` is the
 * thread's stack from its stack pointer to its end. Afterwards the caller sets unwind.interpreter =
 * &stack->frames. Context: signal, for its own thread; or the helper, for another one.
 * Async-signal-safe: yes. Cost: some 100 ns for each frame. */
void python_stack_begin(struct python_stack *stack, const struct python *python,
                        uintptr_t thread_state, struct stack_range native);

#endif
