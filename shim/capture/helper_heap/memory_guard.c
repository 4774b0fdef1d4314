#include "memory_guard.h"

#include "arch_context.h"
#include "clock.h"
#include "helper_heap.h"
#include "kernel/first_page.h"
#include "kernel/signals_blocked.h"
#include "record/thread_table.h"

#include <setjmp.h>
#include <string.h>

/* Bounds the search for string functions: within so many bytes libc's string functions for one kind
 * of processor are adjacent, and the functions that follow are similar. */
enum { STRING_FUNCTION_BYTES = 1024 };

/* Holds the guard's state, which only the helper reads and writes. */
IN_FIRST_PAGE static struct guard {
    jmp_buf *way_out;    /* NULL: no work is running */
    uint64_t end;        /* end of the budget, on the helper's CPU clock */
    bool (*watch)(void); /* set by memory_guard_timed_by(): starts the timer */
    const _Atomic int *signal;
    const struct code_range *ranges;
    size_t count;
} guard;

/* --- leaving --- */

void memory_guard_leave(void) {
    if (profiler_tls.inside == OWN_GUARDED)
        longjmp(*guard.way_out, 1);
}

static bool is_string_function(uintptr_t pc) {
    const uintptr_t functions[] = {(uintptr_t)(void *)memcpy,  (uintptr_t)(void *)memchr,
                                   (uintptr_t)(void *)memcmp,  (uintptr_t)(void *)strlen,
                                   (uintptr_t)(void *)strcmp,  (uintptr_t)(void *)strchr,
                                   (uintptr_t)(void *)strnlen, (uintptr_t)(void *)strncmp};
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        if (pc - functions[i] < STRING_FUNCTION_BYTES)
            return true;
    return false;
}

static bool may_leave_at(uintptr_t pc) {
    if (helper_heap_is_entered())
        return false;
    for (size_t i = 0; i < guard.count; i++)
        if (pc - guard.ranges[i].start < guard.ranges[i].end - guard.ranges[i].start)
            return true;
    /* a malloc that the program defines may be calling the string function under a lock */
    return helper_heap.malloc_is_profilers && is_string_function(pc);
}

void memory_guard_on_signal(void *context) {
    uint64_t registers[REGISTER_COUNT];
    if (profiler_tls.inside != OWN_GUARDED || !guard.way_out || thread_cpu_nano() < guard.end)
        return;
    registers_from_context(registers, context);
    if (may_leave_at(registers[REGISTER_PC]))
        context_call(context, memory_guard_leave);
}

/* --- working --- */

void memory_guard_timed_by(bool (*watch)(void), const _Atomic int *signal) {
    guard.watch = watch;
    guard.signal = signal;
}

bool memory_guard_is_timed(void) {
    return guard.watch && guard.watch();
}

static void memory_guard_begin(const struct work_budget *budget) {
    const bool timed = budget->cpu_nano && memory_guard_is_timed();
    guard.end = timed ? thread_cpu_nano() + budget->cpu_nano : UINT64_MAX;
    helper_heap_begin_work(budget->bytes);
    profiler_tls.inside = OWN_GUARDED;
    if (timed)
        signal_unblock(atomic_load(guard.signal));
}

/* Blocks all signals again, because the signal that was unblocked may have been replaced meanwhile.
 * Leaves out libc's own signals (SIGCANCEL, SIGSETXID; nptl/internaltypes.h): while a thread blocks
 * these, setuid() would wait for ever. */
static void memory_guard_end(bool left) {
    const signal_mask all = ~(signal_bit(32) | signal_bit(33));
    profiler_tls.inside = OWN_WORK;
    guard.way_out = NULL;
    (void)signals_change(SIG_SETMASK, &all, NULL);
    helper_heap_end_work(left);
}

bool memory_guard_run(void (*work)(void *arg), void *arg, const struct work_budget *budget) {
    jmp_buf here;
    /* not restored by the jump: memory_guard_end() restores the signal mask */
    const bool left = _setjmp(here) != 0;
    if (!left) {
        guard.way_out = &here;
        memory_guard_begin(budget);
        work(arg);
    }
    memory_guard_end(left);
    return !left;
}

void memory_guard_allow(const struct code_range *ranges, size_t count) {
    guard.ranges = ranges;
    guard.count = count;
}

void memory_guard_after_fork(void) {
    guard.way_out = NULL;
}
