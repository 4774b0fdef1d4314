/* The stack of a thread that stands still, walked by the helper from a copy.
 *
 * Two things are known of such a thread: where the kernel has it (stack pointer and pc of the
 * system call, but not its frame pointer), and, in a hook of ours, where that was called from (with
 * the frame pointer). The walk begins at the first and goes on from the second when it comes
 * there: so the stack has the libc function that was called, and the program's frames, which may
 * need the frame pointer.
 * The copy is taken in one piece, and a caller that finds the thread where it was before believes
 * it. Nothing of another thread's stack is read in place: it goes with its thread. An interpreter's
 * frames are read as they are found, by calls that cannot fault: the same caller judges them.
 *
 * Context: the helper.
 */
#ifndef OTELPROF_STANDING_STACK_H
#define OTELPROF_STANDING_STACK_H

#include "frames/python_threads.h"
#include "record/parked.h"
#include "record/thread_table.h"
#include "unwind/unwind.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { STANDING_STACK_BYTES = 256 << 10 }; /* of a deeper one the innermost frames are known */

struct standing {
    uintptr_t stack_pointer; /* in the kernel's eyes; 0: not known */
    uintptr_t pc;
    struct parked_caller hook; /* stack_pointer 0: it is in none */
};

/* Room for a walk. */
struct standing_stack {
    struct python *python; /* whose frames are listed; NULL: nobody's */
    struct python_threads *python_threads;
    uint8_t *copy; /* STANDING_STACK_BYTES, of which the first page below a stack pointer */
    struct stack_range copied;
    uint64_t registers[REGISTER_COUNT]; /* of an UNWIND_EXPRESSION: where the copy is read from */
    uint64_t *frames;                   /* room for `max` */
    uintptr_t ended;                    /* the stack pointer that the kernel's walk came to */
    uint32_t max;
    uint32_t count; /* out */
    bool is_foreign;
    bool is_in_hook;       /* out: its caller's frame is where the slot says */
    bool reached_hook;     /* out: the walk from the kernel's place came there, */
    bool by_frame_pointer; /* out: struct unwind */
    bool in_handler;       /* out: and it is in a signal handler that came into the call */
    bool is_doubtful;      /* out: the interpreter's frames were not as they should be */
};

/* Walks the stack of `thread`, which may have gone on meanwhile: only its caller can know. At least
 * one frame. */
enum unwind_end standing_stack_walk(struct standing_stack *stack, const struct unwinder *unwinder,
                                    const struct thread_state *thread,
                                    const struct standing *standing);

/* After a walk: whether it was our own code that made the call in which the thread stands. */
bool standing_stack_is_ours(const struct standing_stack *stack, const struct unwinder *unwinder,
                            const struct thread_state *thread, const struct standing *standing);

#endif
