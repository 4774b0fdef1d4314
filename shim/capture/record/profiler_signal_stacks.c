#include "profiler_signal_stacks.h"

#include "arch_memory.h"
#include "kernel/profiler_memory.h"
#include "seccomp_state.h"
#include "thread_table.h"

#include <errno.h>
#include <stddef.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef AT_MINSIGSTKSZ
#define AT_MINSIGSTKSZ                                                                             \
    51 /* size of the kernel's frame on this processor (Linux, uapi/linux/auxvec.h) */
#endif

enum {
    PER_SEGMENT = 16,
    SEGMENTS = THREAD_SEGMENTS * THREADS_PER_SEGMENT / PER_SEGMENT,
    GUARDED_SEGMENTS = 64,
    GUARD_BYTES = ARCH_LARGEST_PAGE_BYTES,
    HEAD_BYTES = 2 * ARCH_LARGEST_PAGE_BYTES,
    STRIDE = PROFILER_SIGNAL_STACK_BYTES + GUARD_BYTES,
    /* from below: a guard, the first stack, the head, and then 15 times a guard and a stack */
    SEGMENT_BYTES = PER_SEGMENT * STRIDE + HEAD_BYTES,
    /* largest frame of the kernel that is accepted: a handler that the program has set without the
     * hooks may run on the rest of the stack */
    MOST_FRAME_BYTES = PROFILER_SIGNAL_STACK_BYTES / 4,
};

/* Heads a segment. */
struct segment {
    struct profiler_signal_stack stacks[PER_SEGMENT];
};
_Static_assert(sizeof(struct segment) <= HEAD_BYTES, "a segment's head holds its stacks");

static _Atomic uintptr_t segments[SEGMENTS];
/* one past the index of the last segment that was ever mapped */
static _Atomic uint32_t segments_end;

/* Names two stacks in a forked child, which their slots have swapped: the stack on which the
 * child's thread stays, and the stack of that thread's slot. The second is NULL if that slot has
 * none; then no slot has the first. */
static struct profiler_signal_stack *exchanged[2];

static uintptr_t first_stack_of(const struct segment *segment) {
    return (uintptr_t)segment - PROFILER_SIGNAL_STACK_BYTES;
}

static uintptr_t stack_of(const struct segment *segment, uint32_t place) {
    return place == 0
               ? first_stack_of(segment)
               : (uintptr_t)segment + HEAD_BYTES + (place - 1) * (uintptr_t)STRIDE + GUARD_BYTES;
}

/* Unlocks the mapping. Otherwise, in a program that locks its future memory (MCL_FUTURE), the whole
 * MiB would be resident. */
static void unlock_segment(void *memory) {
    const int saved = errno;
    if (!seccomp_is_filtered())
        syscall(SYS_munlock, memory, (size_t)SEGMENT_BYTES);
    errno = saved;
}

/* Maps a segment without the advice of the profiler's other memory: a core dump must include the
 * stack of a handler that was set without the hooks, and no huge page fits between two guards. */
static struct segment *map_segment(uint32_t index) {
    const uint32_t number = index / PER_SEGMENT;
    char *const memory = profiler_memory_addresses(SEGMENT_BYTES, PROT_NONE);
    if (!memory)
        return NULL;
    if (number > 0)
        unlock_segment(memory);
    struct segment *const segment =
        (struct segment *)(memory + GUARD_BYTES + PROFILER_SIGNAL_STACK_BYTES);
    const bool guarded = number < GUARDED_SEGMENTS;
    const size_t opened =
        guarded ? PROFILER_SIGNAL_STACK_BYTES + HEAD_BYTES : SEGMENT_BYTES - GUARD_BYTES;
    if (!profiler_memory_open((void *)first_stack_of(segment), opened)) {
        profiler_memory_unmap(memory, SEGMENT_BYTES);
        return NULL;
    }
    return segment;
}

/* Finds or maps the segment of a slot; NULL: the kernel refuses memory. Two threads may map it at
 * once: then one of them unmaps its own. */
static struct segment *segment_of(uint32_t index) {
    _Atomic uintptr_t *const place = &segments[index / PER_SEGMENT];
    /* pairs with the exchange below, on another thread */
    uintptr_t present = atomic_load_explicit(place, memory_order_acquire);
    if (present)
        return (struct segment *)present;
    struct segment *const segment = map_segment(index);
    if (!segment)
        return NULL;
    uint32_t end = atomic_load(&segments_end); /* stored before other threads see the segment */
    while (end <= index / PER_SEGMENT &&
           !atomic_compare_exchange_weak(&segments_end, &end, index / PER_SEGMENT + 1))
        ;
    if (atomic_compare_exchange_strong(place, &present, (uintptr_t)segment))
        return segment;
    profiler_memory_unmap((char *)first_stack_of(segment) - GUARD_BYTES, SEGMENT_BYTES);
    return (struct segment *)present;
}

/* Makes the memory of a stack accessible, unless it is (`is_open`). Returns false if the kernel
 * refuses. Only the slot's thread calls this function. */
static bool open_stack(struct profiler_signal_stack *stack, uintptr_t low, bool is_open) {
    if (stack->low)
        return true;
    if (!is_open && !profiler_memory_open((void *)low, PROFILER_SIGNAL_STACK_BYTES))
        return false;
    stack->low = low;
    stack->high = low + PROFILER_SIGNAL_STACK_BYTES;
    return true;
}

struct profiler_signal_stack *profiler_signal_stacks_take(uint32_t index) {
    if (getauxval(AT_MINSIGSTKSZ) > MOST_FRAME_BYTES)
        return NULL;
    struct segment *const segment = segment_of(index);
    if (!segment)
        return NULL;
    const uint32_t place = index % PER_SEGMENT;
    struct profiler_signal_stack *const stack = &segment->stacks[place];
    const bool is_open = place == 0 || index / PER_SEGMENT >= GUARDED_SEGMENTS;
    if (!open_stack(stack, stack_of(segment, place), is_open))
        return NULL;
    return stack == exchanged[0] ? exchanged[1] : stack == exchanged[1] ? exchanged[0] : stack;
}

void profiler_signal_stacks_exchange(uint32_t index, struct profiler_signal_stack *present) {
    exchanged[0] = NULL;
    exchanged[1] = NULL;
    struct profiler_signal_stack *const slots = profiler_signal_stacks_take(index);
    if (slots == present)
        return;
    exchanged[0] = present;
    exchanged[1] = slots;
}

/* Returns the segment's stack that has the address; NULL: there is none. */
static struct profiler_signal_stack *profiler_signal_stack_at(struct segment *segment,
                                                              uintptr_t address) {
    const uintptr_t from_first = address - first_stack_of(segment);
    const uint32_t place =
        from_first <= PROFILER_SIGNAL_STACK_BYTES
            ? 0
            : (uint32_t)((address - (uintptr_t)segment - HEAD_BYTES - 1) / STRIDE) + 1;
    if (place >= PER_SEGMENT)
        return NULL;
    struct profiler_signal_stack *const stack = &segment->stacks[place];
    return profiler_signal_stack_has(stack, address) ? stack : NULL;
}

struct profiler_signal_stack *profiler_signal_stacks_at(uintptr_t address) {
    const uint32_t end = atomic_load_explicit(&segments_end, memory_order_relaxed);
    for (uint32_t i = 0; i < end; i++) {
        const uintptr_t segment = atomic_load_explicit(&segments[i], memory_order_relaxed);
        const uintptr_t low = segment - PROFILER_SIGNAL_STACK_BYTES - GUARD_BYTES;
        if (segment && address - 1 - low < SEGMENT_BYTES)
            return profiler_signal_stack_at((struct segment *)segment, address);
    }
    return NULL;
}

struct profiler_signal_stack *profiler_signal_stacks_of(const ucontext_t *context) {
    const stack_t *const kernels = &context->uc_stack;
    struct profiler_signal_stack *const stack =
        kernels->ss_size ? profiler_signal_stacks_at((uintptr_t)kernels->ss_sp + kernels->ss_size)
                         : NULL;
    return stack ? stack : profiler_signal_stacks_at((uintptr_t)context);
}

bool profiler_signal_stacks_know(uintptr_t thread_pointer) {
    const uint32_t end = atomic_load_explicit(&segments_end, memory_order_relaxed);
    for (uint32_t i = 0; i < end; i++) {
        const struct segment *const segment =
            (const struct segment *)atomic_load_explicit(&segments[i], memory_order_relaxed);
        for (uint32_t place = 0; segment && place < PER_SEGMENT; place++)
            if (atomic_load_explicit(&segment->stacks[place].thread_pointer,
                                     memory_order_relaxed) == thread_pointer)
                return true;
    }
    return false;
}

bool profiler_signal_stacks_include(const struct profiler_signal_stack *stack) {
    const uint32_t end = atomic_load_explicit(&segments_end, memory_order_relaxed);
    for (uint32_t i = 0; i < end; i++) {
        const uintptr_t segment = atomic_load_explicit(&segments[i], memory_order_relaxed);
        const uintptr_t offset = (uintptr_t)stack - segment;
        if (segment && offset < sizeof(struct segment) && offset % sizeof *stack == 0)
            return true;
    }
    return false;
}

static struct stack_range range_of(const stack_t *stack) {
    const uintptr_t low = (uintptr_t)stack->ss_sp;
    return stack->ss_size ? (struct stack_range){low, low + stack->ss_size}
                          : (struct stack_range){0, 0};
}

struct stack_range profiler_signal_stacks_range(const stack_t *kernels, uintptr_t sp) {
    const struct profiler_signal_stack *const own = profiler_tls.signal_stack;
    if (own && profiler_signal_stack_has(own, sp))
        return (struct stack_range){own->low, own->high};
    if (!own || !profiler_signal_stack_is(own, kernels))
        return range_of(kernels);
    return range_of(&own->settings[profiler_signal_stack_place(own, kernels)]);
}

struct stack_range profiler_signal_stacks_present(uintptr_t sp) {
    stack_t stack;
    const int saved = errno;
    const long result = syscall(SYS_sigaltstack, NULL, &stack);
    errno = saved;
    return result == 0 ? profiler_signal_stacks_range(&stack, sp) : (struct stack_range){0, 0};
}
