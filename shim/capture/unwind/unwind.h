/* The walker: from a set of registers to the list of return addresses, in one loop.
 *
 * Each frame's rule comes from the rule cache, or on a miss from the module's .eh_frame (cfi.h).
 * The walker holds program counter, stack pointer and frame pointer, reads the stack only through
 * stack_memory.h, requires that the stack pointer grows with every frame, takes no lock and calls
 * no allocator. Code that no unwind information describes because it was generated (JIT code, V8's
 * built-ins), or because its object has no such information at all (Free Pascal's programs), is
 * crossed by frame pointers, under conditions that keep it from inventing frames. Go leaves the
 * thread's stack and comes back to it: so does the walk. A frame that cannot be followed ends the
 * walk with the reason, and stack_end.h defines the end of a stack; frames of libotelprof.so itself
 * are followed but not listed. Where an interpreter runs (struct interpreter_frames) its functions
 * are listed instead of the native frame that runs them; where the walk ends too early, the
 * remaining functions are listed last.
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
    UNWIND_COMPLETE,   /* reached a frame that has no caller */
    UNWIND_DEPTH,      /* `max` frames listed, more to come */
    UNWIND_TRUNCATED,  /* cannot be followed */
    UNWIND_CHANGING,   /* leads into a library while one is being unloaded: not searched */
    UNWIND_EXPRESSION, /* a rule that only libunwind can execute */
};

struct unwinder {
    struct modules *modules;
    struct rule_cache *rules;
    uintptr_t profiler_start; /* libotelprof.so's own code, not listed */
    uintptr_t profiler_end;
    struct registered_tables *registered; /* tables of code outside of objects; NULL: none */
    _Atomic uintptr_t
        *generated; /* address of the code outside of objects that ran last; 0: none */
};

struct unwind;

/* Functions that an interpreter runs in native frames of its own, listed during the walk: its
 * frames take the place of the native one that runs them. */
struct interpreter_frames {
    uintptr_t at; /* on the stack, in the next such native frame; 0: there is none */
    /* Lists the functions that run at `at`, innermost first, as far as there is room, and sets `at`
     * to the next place. Sets it to 0 if it lists none. */
    void (*list)(struct interpreter_frames *frames, struct unwind *unwind);
};

struct unwind {
    struct stack_range thread_stack;
    struct stack_range signal_stack; /* empty if none */
    uint64_t *frames;                /* out: harvest_sample.frames */
    uint32_t max;
    uint32_t own_unloads;                   /* calls of dlclose() that the thread is inside */
    struct interpreter_frames *interpreter; /* NULL: none runs here */
    uint32_t count;
    uintptr_t left_at;     /* where the walk last left a known stack for another */
    bool cold;             /* rules are hardly in the cache; set once one was not */
    bool foreign_stack;    /* out: went over a stack that is neither of the two */
    bool crossed_signal;   /* out: the stack holds a signal handler of the application */
    bool by_record_alone;  /* out: one was left by a frame record that its instructions do not
                              confirm:  the frames between may be of any kind, a signal's, too */
    bool by_frame_pointer; /* out: a frame has no rule: it was left by a frame record, or by its
                              instructions, and functions around it may be missing */
    /* Not empty: the stack is another thread's. Only this part of it is read, from a copy whose
     * bytes lie `moved_by` further. */
    struct stack_range copied;
    uintptr_t moved_by;
    bool from_caller;   /* REGISTER_PC is where a call will return to */
    bool fp_unknown;    /* REGISTER_FP is not what the thread has there */
    uintptr_t ended_pc; /* out: the last frame that the walk came to */
    uintptr_t ended_sp;
};

/* Returns true if the address is in the code of libotelprof.so. Context: any. Async-signal-safe:
 * yes. */
static inline bool unwinder_is_profiler(const struct unwinder *unwinder, uintptr_t pc) {
    return pc - unwinder->profiler_start < unwinder->profiler_end - unwinder->profiler_start;
}

/* Walks from `registers` (REGISTER_PC exact: the interrupted pc). Cost: about 5 ns a frame warm,
 * 0.5 µs cold. Context: any. Async-signal-safe: yes. */
enum unwind_end unwind_walk(const struct unwinder *unwinder,
                            const uint64_t registers[REGISTER_COUNT], struct unwind *unwind);

#endif
