/* Walks a stack: from a set of registers to the list of return addresses, in one loop.
 *
 * Each frame's rule comes from the rule cache, or on a miss from the module's .eh_frame (cfi.h).
 * The walker holds program counter, stack pointer and frame pointer, reads the stack only through
 * stack_memory.h, requires that the stack pointer grows with every frame, takes no lock and calls
 * no allocator. Code that no unwind information describes because it was generated (JIT code, V8's
 * built-ins), or because its object has no such information at all (Free Pascal's programs), is
 * crossed by frame pointers, under conditions that keep it from inventing frames. Go leaves the
 * thread's stack and returns to it, so the walk follows both. A frame that cannot be followed ends
 * the walk with a reason; stack_end.h defines the end of a stack. Frames of libotelprof.so itself
 * are followed but not listed. Where an interpreter runs (struct interpreter_frames), its functions
 * are listed instead of the native frame that runs them; if the walk ends too early, the remaining
 * functions are listed last.
 */
#ifndef OTELPROF_UNWIND_H
#define OTELPROF_UNWIND_H

#include "harvest.h"
#include "modules.h"
#include "registered_tables.h"
#include "rule_cache.h"
#include "stack_memory.h"

#include <stdbool.h>
#include <stdint.h>

enum unwind_end {
    UNWIND_COMPLETE,  /* the walk reached a frame that has no caller */
    UNWIND_DEPTH,     /* `max` frames are listed, and the stack has more */
    UNWIND_TRUNCATED, /* a frame cannot be followed */
    /* a frame is in a library while one is being unloaded, so its tables were not read */
    UNWIND_CHANGING,
    UNWIND_EXPRESSION, /* a frame has a rule that only libunwind can execute */
};

struct unwinder {
    struct modules *modules;
    struct rule_cache *rules;
    uintptr_t profiler_start; /* start of libotelprof.so's code, whose frames are not listed */
    uintptr_t profiler_end;
    /* registered tables of code outside of objects; NULL: none */
    struct registered_tables *registered;
    _Atomic uintptr_t
        /* address of the code outside of objects that was found running last; 0: none */
        *generated;
};

struct unwind;

/* Holds the functions that an interpreter runs. The walk lists them in place of the native frames
 * that run them. */
struct interpreter_frames {
    /* place on the stack, in the next native frame that runs functions; 0: there is none */
    uintptr_t at;
    /* Lists the functions that run at `at`, innermost first: all of them, or none if one is in
     * doubt, or as many as there is room for. Sets `at` to the next place; 0: there is none, or no
     * room. */
    void (*list)(struct interpreter_frames *frames, struct unwind *unwind);
};

struct unwind {
    struct stack_range thread_stack;
    struct stack_range signal_stack; /* the thread's alternate signal stack; empty: none */
    uint64_t *frames;                /* result: harvest_sample.frames */
    uint32_t max;
    /* number of dlclose() calls that the thread is inside */
    uint32_t own_unloads;
    struct interpreter_frames *interpreter; /* NULL: no interpreter runs on this stack */
    uint32_t count;
    uintptr_t left_at; /* where the walk last left a known stack for another stack */
    /* rules are probably missing in the cache: the caller expects that, or one was missing */
    bool cold;
    bool foreign_stack;  /* result: the walk crossed a stack that is neither of the two */
    bool crossed_signal; /* result: a signal handler of the application is on the stack */
    /* result: a frame was left by a frame record that its instructions do not confirm, so frames
     * may be missing in between, even a signal's */
    bool by_record_alone;
    /* result: a frame without a rule was left by a frame record, or by its instructions, so
     * functions around it may be missing */
    bool by_frame_pointer;
    /* If not empty, the stack is another thread's: only this part of it is read, from a copy that
     * lies `moved_by` bytes further. */
    struct stack_range copied;
    uintptr_t moved_by;
    bool from_caller;   /* REGISTER_PC is the return address of a call */
    bool fp_unknown;    /* REGISTER_FP is not the thread's frame pointer */
    uintptr_t ended_pc; /* result: the last frame that the walk came to */
    uintptr_t ended_sp;
};

/* Returns true if the address is in the code of libotelprof.so. Context: any. Async-signal-safe:
 * yes. */
static inline bool unwinder_is_profiler(const struct unwinder *unwinder, uintptr_t pc) {
    return pc - unwinder->profiler_start < unwinder->profiler_end - unwinder->profiler_start;
}

/* Walks from `registers`, and lists `count` frames. REGISTER_PC is the interrupted pc; with
 * `from_caller` it is a return address. Returns the reason why the walk ended. Cost: about 5 ns a
 * frame warm, 0.5 µs cold. Context: any. Async-signal-safe: yes. */
enum unwind_end unwind_walk(const struct unwinder *unwinder,
                            const uint64_t registers[REGISTER_COUNT], struct unwind *unwind);

#endif
