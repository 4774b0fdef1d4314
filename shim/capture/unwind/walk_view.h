/* Selects the stack that a walk may read, and the part of it: the thread's own stack, its signal
 * stack, an unknown stack, or a copy.
 *
 * Context: any. Async-signal-safe: yes.
 */
#ifndef OTELPROF_WALK_VIEW_H
#define OTELPROF_WALK_VIEW_H

#include "arch_code.h"
#include "arch_memory.h"
#include "unwind.h"

/* Returns the lowest address that may be read. A leaf may use the red zone below its stack pointer:
 * in an epilogue the CFI still refers to registers there that have just been popped. Memory in the
 * page of `sp` is mapped. */
static inline uintptr_t lowest_readable(uintptr_t sp) {
    const uintptr_t red_zone = sp - ARCH_RED_ZONE;
    const uintptr_t page = sp & -(uintptr_t)ARCH_SMALLEST_PAGE_BYTES;
    return red_zone > page ? red_zone : page;
}

/* Returns true if the address is on the thread's own stack, or its signal stack. */
static inline bool is_on_known_stack(const struct unwind *u, uintptr_t address) {
    return stack_range_has(u->thread_stack, address) || stack_range_has(u->signal_stack, address);
}

/* Returns a view of the copy; memory outside of it cannot be read. */
static inline struct stack_view view_of_copy(struct unwind *u, uintptr_t sp, uintptr_t low) {
    const struct stack_range copied = u->copied;
    const bool has = stack_range_has(copied, sp);
    u->foreign_stack |= !stack_range_has(u->thread_stack, sp);
    return (struct stack_view){.low = low > copied.low ? low : copied.low,
                               .high = has ? copied.high : copied.low,
                               .moved_by = u->moved_by};
}

static inline struct stack_view view_of(struct unwind *u, uintptr_t sp) {
    const uintptr_t low = lowest_readable(sp);
    if (u->copied.high)
        return view_of_copy(u, sp, low);
    if (stack_range_has(u->thread_stack, sp))
        return stack_view_known(low, u->thread_stack.high);
    if (stack_range_has(u->signal_stack, sp))
        return stack_view_known(low, u->signal_stack.high);
    u->foreign_stack = true;
    return stack_view_unknown(low);
}

#endif
