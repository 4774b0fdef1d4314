/* The stack of a blocked thread, walked by the helper from a copy.
 *
 * Two places in such a stack are known. The kernel reports the stack pointer and pc of the system
 * call, but not the frame pointer. In a hook of the profiler the slot has the hook's caller, with
 * its frame pointer. The walk begins at the first place and continues from the second when it comes
 * there. So the result has the libc function that was called, and the program's frames, which may
 * need the frame pointer.
 *
 * The copy is taken in one piece. The caller trusts it if the thread is in the same wait
 * afterwards. No memory of another thread's stack is read in place, because it disappears with its
 * thread. The frames of an interpreter are read in place, by calls that cannot fault; the same
 * check of the caller covers them.
 *
 * Context: the helper.
 */
#ifndef OTELPROF_BLOCKED_STACK_H
#define OTELPROF_BLOCKED_STACK_H

#include "frames/python_threads.h"
#include "record/thread_table.h"
#include "record/wait_slot.h"
#include "unwind/unwind.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { BLOCKED_STACK_BYTES = 256 << 10 }; /* a deeper stack is cut; its innermost frames stay */

struct blocked_place {
    uintptr_t stack_pointer; /* as the kernel reports it; 0: not known */
    uintptr_t pc;
    struct hook_caller hook; /* stack_pointer 0: the thread is in no hook */
};

/* Memory and results of a walk. */
struct blocked_stack {
    struct python *python; /* interpreter whose frames are listed; NULL: none */
    struct python_threads *python_threads;
    uint8_t *copy; /* BLOCKED_STACK_BYTES, the first page of it below a stack pointer */
    struct stack_range copied;
    uint64_t registers[REGISTER_COUNT]; /* after UNWIND_EXPRESSION: where the copy is read from */
    uint64_t *frames;                   /* room for `max` */
    uintptr_t ended; /* stack pointer at the end of the walk from the kernel's place */
    uint32_t max;
    uint32_t count; /* out */
    bool is_foreign;
    bool is_in_hook;       /* out: the slot describes the present call */
    bool reached_hook;     /* out: the walk from the kernel's place came to the hook */
    bool by_frame_pointer; /* out: as in struct unwind */
    bool in_handler;       /* out: and passed a signal handler that interrupted the call */
    bool is_doubtful;      /* out: the interpreter's frames were inconsistent */
};

/* Walks the stack of `thread`. The thread may have gone on meanwhile; the caller must check that.
 * Finds at least one frame. */
enum unwind_end blocked_stack_walk(struct blocked_stack *stack, const struct unwinder *unwinder,
                                   const struct thread_state *thread,
                                   const struct blocked_place *blocked_place);

/* After a walk: returns true if the profiler's own code made the call that the thread is blocked
 * in. */
bool blocked_stack_is_profiler(const struct blocked_stack *stack, const struct unwinder *unwinder,
                               const struct thread_state *thread,
                               const struct blocked_place *blocked_place);

#endif
