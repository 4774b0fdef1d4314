/* Walks the stack of a blocked thread, on the helper, from a copy.
 *
 * Two places in such a stack are known. The kernel reports the stack pointer and pc of the system
 * call, but not the frame pointer. In a hook of the profiler the slot has the hook's caller, with
 * its frame pointer. The walk begins at the system call, and at the hook's frame it continues with
 * the slot's registers. So the result has the libc function that was called, and the program's
 * frames, which may need the frame pointer.
 *
 * The stack is copied at once, and the caller uses the result only if the thread is in the same
 * wait afterwards. No stack of another thread is read in place, because it disappears with its
 * thread. The frames of an interpreter are read in place, by calls that cannot fault; the caller's
 * check covers these, too.
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
    uintptr_t stack_pointer; /* stack pointer that the kernel reports; 0: not known */
    uintptr_t pc;
    struct hook_caller hook; /* the hook's caller; stack_pointer 0: the thread is in no hook */
};

/* Holds the memory and the results of a walk. */
struct blocked_stack {
    struct python *python; /* the interpreter whose frames are listed; NULL: none */
    struct python_threads *python_threads;
    uint8_t *copy; /* BLOCKED_STACK_BYTES: the largest size of a copy, and two pages for its ends */
    struct stack_range copied;
    uint64_t registers[REGISTER_COUNT]; /* registers with which the last walk began */
    uint64_t *frames;                   /* room for `max` frames */
    uintptr_t ended; /* stack pointer at which the walk from the system call ended */
    uint32_t max;
    uint32_t count; /* result: number of frames */
    bool is_foreign;
    bool is_in_hook;       /* result: the slot describes the present call */
    bool reached_hook;     /* result: the walk from the system call came to the hook */
    bool by_frame_pointer; /* result: as in struct unwind */
    /* result: the walk from the system call passed a signal handler that interrupted the call */
    bool in_handler;
    bool is_doubtful; /* result: the interpreter's frames were inconsistent */
};

/* Walks the stack of `thread`, and returns the reason why the walk ended. The thread may continue
 * meanwhile; the caller must check that it has not. Lists at least one frame, even if nothing can
 * be read. */
enum unwind_end blocked_stack_walk(struct blocked_stack *stack, const struct unwinder *unwinder,
                                   const struct thread_state *thread,
                                   const struct blocked_place *blocked_place);

/* Returns true, after a walk, if the profiler's own code made the call that the thread is blocked
 * in. */
bool blocked_stack_is_profiler(const struct blocked_stack *stack, const struct unwinder *unwinder,
                               const struct thread_state *thread,
                               const struct blocked_place *blocked_place);

#endif
