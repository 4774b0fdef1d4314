#include "blocked_stack.h"

#include "arch_code.h"
#include "arch_memory.h"
#include "frames/python_stack.h"
#include "safe_read.h"

#include <string.h>

/* Lists the sizes of the copy, in bytes. Most stacks fit into the first size. If a walk is
 * truncated or needs libunwind, and the copy is not the whole stack, the next size is copied. */
static const size_t steps[] = {8 << 10, 64 << 10,
                               BLOCKED_STACK_BYTES - 2 * ARCH_SMALLEST_PAGE_BYTES};
enum { STEPS = sizeof steps / sizeof *steps };

/* --- the copy --- */

/* Returns the end of the page, where memory above a stack of unknown bounds may end. */
static uintptr_t page_end(uintptr_t address) {
    return (address | (ARCH_SMALLEST_PAGE_BYTES - 1)) + 1;
}

static bool copy_range(struct blocked_stack *stack, uintptr_t low, uintptr_t high) {
    stack->copied = (struct stack_range){low, high};
    return high > low && safe_read(low, stack->copy, high - low);
}

static bool copy_stack(struct blocked_stack *stack, const struct thread_state *thread, uintptr_t sp,
                       size_t size) {
    /* a leaf function may use memory below its stack pointer; in the same page it is readable */
    const uintptr_t page = sp & -(uintptr_t)ARCH_SMALLEST_PAGE_BYTES;
    const uintptr_t red_zone = (sp - ARCH_RED_ZONE) & ~(uintptr_t)15;
    const uintptr_t low = red_zone > page ? red_zone : page;
    stack->is_foreign = !stack_range_has(thread->stack, sp);
    if (stack->is_foreign)
        return copy_range(stack, low, page_end(sp + size)) || copy_range(stack, low, page_end(sp));
    const uintptr_t high = thread->stack.high & ~(uintptr_t)7;
    return copy_range(stack, low, high - low > size ? low + size : high);
}

/* --- the walk --- */

static struct unwind blocked_walk_make(const struct blocked_stack *stack,
                                       const struct thread_state *thread, uint32_t listed) {
    return (struct unwind){.thread_stack = thread->stack,
                           .frames = stack->frames + listed,
                           .max = stack->max - listed,
                           .copied = stack->copied,
                           .moved_by = (uintptr_t)stack->copy - stack->copied.low};
}

static void set_registers(struct blocked_stack *stack, uintptr_t pc, uintptr_t sp, uintptr_t fp) {
    for (int i = 0; i < REGISTER_COUNT; i++)
        stack->registers[i] = 0;
    stack->registers[REGISTER_PC] = pc;
    stack->registers[REGISTER_SP] = sp;
    stack->registers[REGISTER_FP] = fp;
}

/* Walks from stack->registers, and inserts the frames of the interpreter's thread `state`. */
static enum unwind_end blocked_walk_python(struct blocked_stack *stack,
                                           const struct unwinder *unwinder, struct unwind *unwind,
                                           uintptr_t state) {
    const uintptr_t high = stack->is_foreign ? stack->copied.high : unwind->thread_stack.high;
    struct python_stack python = {
        .reader = {.of_another = true, .copies = python_threads_pages(stack->python_threads)}};
    python_stack_begin(&python, stack->python, state,
                       (struct stack_range){stack->registers[REGISTER_SP], high});
    unwind->interpreter = &python.frames;
    const enum unwind_end end = unwind_walk(unwinder, stack->registers, unwind);
    unwind->interpreter = NULL;
    stack->is_doubtful |= python.doubts != 0;
    return end;
}

static enum unwind_end blocked_walk_frames(struct blocked_stack *stack,
                                           const struct unwinder *unwinder, uint32_t tid,
                                           struct unwind *unwind) {
    enum unwind_end end;
    if (!stack->python || !stack->python_threads || !python_hold(stack->python))
        return unwind_walk(unwinder, stack->registers, unwind);
    const uintptr_t state = python_threads_find(stack->python_threads, stack->python, tid);
    if (state)
        end = blocked_walk_python(stack, unwinder, unwind, state);
    else
        end = unwind_walk(unwinder, stack->registers, unwind);
    python_release(stack->python);
    return end;
}

static enum unwind_end walk_from_kernel(struct blocked_stack *stack,
                                        const struct unwinder *unwinder,
                                        const struct thread_state *thread,
                                        const struct blocked_place *blocked_place) {
    struct unwind unwind = blocked_walk_make(stack, thread, 0);
    unwind.fp_unknown = true;
    set_registers(stack, blocked_place->pc, blocked_place->stack_pointer, 0);
    enum unwind_end end;
    if (stack->is_in_hook) { /* an interpreter does not run below the hook */
        unwind.copied.high = blocked_place->hook.stack_pointer;
        end = unwind_walk(unwinder, stack->registers, &unwind);
    } else
        end = blocked_walk_frames(stack, unwinder, atomic_load(&thread->tid), &unwind);
    stack->count = unwind.count;
    stack->by_frame_pointer = unwind.by_frame_pointer;
    /* the hook is the profiler's code, and has a frame pointer that the kernel does not report */
    stack->reached_hook = unwinder_is_profiler(unwinder, unwind.ended_pc) ||
                          (unwind.ended_sp == blocked_place->hook.stack_pointer &&
                           unwind.ended_pc + 1 == blocked_place->hook.pc);
    stack->in_handler = stack->reached_hook && unwind.crossed_signal;
    stack->ended = unwind.ended_sp;
    return end;
}

/* Keeps only one frame of the hook's callees, the function that the program called, because libc's
 * inner frames differ between versions. Keeps all of them if a signal handler has interrupted the
 * call. Returns the number of frames. */
static uint32_t keep_callee(struct blocked_stack *stack, const struct hook_caller *hook) {
    uint32_t listed = stack->reached_hook ? stack->count : 0;
    if (listed && stack->frames[listed - 1] == hook->pc - 1) /* the second walk lists this frame */
        listed--;
    if (listed == 0 || stack->in_handler)
        return listed;
    stack->frames[0] = stack->frames[listed - 1];
    return 1;
}

static enum unwind_end walk_from_hook(struct blocked_stack *stack, const struct unwinder *unwinder,
                                      const struct thread_state *thread,
                                      const struct hook_caller *hook) {
    const uint32_t listed = keep_callee(stack, hook);
    struct unwind unwind = blocked_walk_make(stack, thread, listed);
    unwind.from_caller = true;
    set_registers(stack, hook->pc, hook->stack_pointer, hook->frame_pointer);
    const enum unwind_end end =
        blocked_walk_frames(stack, unwinder, atomic_load(&thread->tid), &unwind);
    stack->by_frame_pointer |= unwind.by_frame_pointer;
    stack->count = listed + unwind.count;
    return end;
}

/* Returns true if the slot's return address is still on the stack. After a longjmp out of the hook
 * the slot is stale, and the place mostly has another value. Where calls do not push the return
 * address, checks only that the place is in the copy. */
static bool is_in_hook(const struct blocked_stack *stack, const struct hook_caller *hook) {
    const uintptr_t slot = hook->stack_pointer + (uintptr_t)(intptr_t)ARCH_PUSHED_RETURN;
    uintptr_t address;
    if (!hook->stack_pointer || !stack_range_has(stack->copied, slot) ||
        !stack_range_has(stack->copied, slot + 7))
        return false;
    if (!ARCH_PUSHED_RETURN)
        return true;
    memcpy(&address, stack->copy + (slot - stack->copied.low), sizeof address);
    return address == hook->pc;
}

static enum unwind_end blocked_walk(struct blocked_stack *stack, const struct unwinder *unwinder,
                                    const struct thread_state *thread,
                                    const struct blocked_place *blocked_place) {
    enum unwind_end end = UNWIND_TRUNCATED;
    stack->count = 0;
    stack->by_frame_pointer = false;
    stack->reached_hook = false;
    stack->in_handler = false;
    stack->is_in_hook = is_in_hook(stack, &blocked_place->hook);
    if (blocked_place->stack_pointer)
        end = walk_from_kernel(stack, unwinder, thread, blocked_place);
    if (blocked_place->stack_pointer && stack->is_in_hook && !stack->reached_hook) {
        stack->is_in_hook = false; /* stays false if no path past the hook is found */
        end = walk_from_kernel(stack, unwinder, thread, blocked_place);
        stack->is_in_hook = stack->ended < blocked_place->hook.stack_pointer;
    }
    if (stack->is_in_hook)
        end = walk_from_hook(stack, unwinder, thread, &blocked_place->hook);
    return end;
}

enum unwind_end blocked_stack_walk(struct blocked_stack *stack, const struct unwinder *unwinder,
                                   const struct thread_state *thread,
                                   const struct blocked_place *blocked_place) {
    const uintptr_t innermost = blocked_place->stack_pointer ? blocked_place->stack_pointer
                                                             : blocked_place->hook.stack_pointer;
    enum unwind_end end = UNWIND_TRUNCATED;
    stack->count = 0;
    stack->is_doubtful = false;
    for (int i = 0; i < STEPS && (end == UNWIND_TRUNCATED || end == UNWIND_EXPRESSION); i++) {
        if (!copy_stack(stack, thread, innermost, steps[i]))
            break;
        end = blocked_walk(stack, unwinder, thread, blocked_place);
        if (stack->is_foreign || stack->copied.high + 8 > thread->stack.high)
            break;
    }
    if (stack->count == 0) {
        stack->frames[0] = blocked_place->pc ? blocked_place->pc : blocked_place->hook.pc - 1;
        stack->count = 1;
    }
    return end;
}

/* Checks the caller of the system call. Walks do not list the profiler's frames, so this function
 * walks with an unwinder that does not know their range. */
bool blocked_stack_is_profiler(const struct blocked_stack *stack, const struct unwinder *unwinder,
                               const struct thread_state *thread,
                               const struct blocked_place *blocked_place) {
    uint64_t registers[REGISTER_COUNT] = {0};
    uint64_t frames[2];
    struct unwinder all = *unwinder;
    struct unwind unwind = blocked_walk_make(stack, thread, 0);
    all.profiler_end = all.profiler_start;
    unwind.frames = frames;
    unwind.max = 2;
    unwind.fp_unknown = true;
    registers[REGISTER_PC] = blocked_place->pc;
    registers[REGISTER_SP] = blocked_place->stack_pointer;
    (void)unwind_walk(&all, registers, &unwind);
    return unwind.count == 2 && unwinder_is_profiler(unwinder, frames[1]);
}
