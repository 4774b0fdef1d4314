#include "program_handlers.h"

#include "arch_context.h"
#include "arch_entry.h"
#include "arch_signal_frame.h"
#include "go_note.h"
#include "kernel/first_page.h"
#include "kernel/signals_blocked.h"
#include "program_stack.h"
#include "record/thread_table.h"
#include "sampler.h"
#include "seccomp_state.h"
#include "signal_thread.h"
#include "symbols/next.h"
#include "unwind/stack_memory.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum { SIGNALS = 65, ENTRIES = 4 };

/* Lists the two signals that the kernel takes out of every mask. */
#define NOT_BLOCKED (signal_bit(SIGKILL) | signal_bit(SIGSTOP))

/* Describes the program's handler that an entry represents. */
struct programs_handler {
    _Atomic uintptr_t function; /* 0: the entry is free; stored after the mask */
    _Atomic signal_mask mask;
    _Atomic bool defers; /* the action lacks SA_NODEFER: the handler's own signal is blocked, too */
};

static struct {
    struct programs_handler handlers[ENTRIES];
    _Atomic uint32_t sets;
    _Atomic uint32_t last; /* the entry of the program's latest action, which the kernel may have */
} table[SIGNALS];

IN_FIRST_PAGE static _Atomic bool has_entries; /* false: no page of `table` has been touched */
/* Set once handlers without SA_ONSTACK have entries, too. */
IN_FIRST_PAGE static _Atomic bool includes_plain;
/* Set once the handlers that were set before that have entries, too. */
IN_FIRST_PAGE static _Atomic bool all_have_entries;

/* --- entering a handler --- */

ARCH_DEFINE_SIGRETURN(own_sigreturn)

/* Holds the address of the C library's rt_sigreturn once it is known: a filter, or
 * PR_SET_SYSCALL_USER_DISPATCH, may allow that system call at this address only. */
__attribute__((used)) static uintptr_t sigreturn_by = (uintptr_t)own_sigreturn;

ARCH_DEFINE_HANDLER_RETURN(program_handler_returns, program_handler_leave, sigreturn_by);

static uintptr_t move_frame(struct profiler_signal_stack *own, uintptr_t frame,
                            const ucontext_t *context) {
    own->latest = (uint8_t)profiler_signal_stack_place(own, &context->uc_stack);
    const stack_t programs = own->settings[own->latest];
    const uintptr_t below = arch_interrupted_sp(context) - FRAME_RED_ZONE;
    const bool is_on_it = program_stack_has(&programs, below);
    const bool enters_it = programs.ss_size && !is_on_it;
    const uintptr_t low = (uintptr_t)programs.ss_sp;
    const struct signal_frame_place place =
        arch_place_signal_frame(enters_it ? low + programs.ss_size : below, context);
    if ((is_on_it || enters_it) && place.frame - low > programs.ss_size)
        arch_fault();
    arch_move_signal_frame(&place, frame, &programs, own);
    return place.frame;
}

/* Returns whether to move the frame. A frame outside of our stack is already where the kernel puts
 * it without the profiler: the thread has no stack of ours, or has set an alternate stack by a
 * system call of its own. If the handler has interrupted code on our stack, the frame stays there:
 * a handler that bypassed our hooks runs below it. */
static bool is_to_move(const struct profiler_signal_stack *own, uintptr_t frame,
                       const ucontext_t *context) {
    return own && profiler_signal_stack_is(own, &context->uc_stack) &&
           profiler_signal_stack_has(own, frame) &&
           !profiler_signal_stack_has(own, arch_interrupted_sp(context)) &&
           arch_has_frame_state(context);
}

/* Returns whether to change the frame where it is. The kernel has entered a handler without
 * SA_ONSTACK, on a thread with a stack of ours: the frame is where it is without the profiler. */
static bool is_to_keep(const struct profiler_signal_stack *own, uintptr_t frame,
                       const ucontext_t *context) {
    return own && profiler_signal_stack_is(own, &context->uc_stack) &&
           !profiler_signal_stack_has(own, frame) && arch_has_frame_state(context);
}

/* Stores the program's setting in a frame that stays where the kernel has put it. */
static void keep_frame(struct profiler_signal_stack *own, uintptr_t frame,
                       const ucontext_t *context) {
    own->latest = (uint8_t)profiler_signal_stack_place(own, &context->uc_stack);
    arch_keep_signal_frame(frame, &own->settings[own->latest], own);
}

/* Reads the temporary mask of the wait (sigsuspend, ppoll) that this signal has ended; the frame
 * has the mask from before the wait. Returns false if the signal has ended no such wait. The hook's
 * note of the wait is cleared here, because one handler ends the wait; a handler that runs before
 * the system call leaves the note. If the wait's mask blocks this signal, the signal did not end
 * the wait: it came later, after a handler without SA_ONSTACK had ended it. */
static bool read_wait_mask(struct profiler_signal_stack *own, int number, const ucontext_t *context,
                           signal_mask *mask) {
    /* largest size of libc's frames between the hook's frame and the system call */
    enum { LIBC_FRAMES_BYTES = 1024 };
    const uintptr_t frame = own ? atomic_load(&own->wait_frame) : 0;
    const uintptr_t from = frame ? (uintptr_t)own->wait_mask : 0;
    if (!frame || !context_has_interrupted_call(context) ||
        frame - arch_interrupted_sp(context) > LIBC_FRAMES_BYTES ||
        arch_return_of_frame(frame) != own->wait_return ||
        !memory_range_is_readable(from, sizeof *mask))
        return false;
    memcpy(mask, (const void *)from, sizeof *mask);
    *mask &= ~NOT_BLOCKED;
    atomic_store(&own->wait_frame, 0);
    return !(*mask & signal_bit(number));
}

static signal_mask mask_of(const struct programs_handler *handler,
                           struct profiler_signal_stack *own, int number,
                           const ucontext_t *context) {
    signal_mask before;
    if (!read_wait_mask(own, number, context, &before))
        memcpy(&before, &context->uc_sigmask, sizeof before);
    return before | atomic_load(&handler->mask) |
           (atomic_load(&handler->defers) ? signal_bit(number) : 0);
}

/* Fills in `begin` and returns 0. If a handler of a library calls the profiler's entry as a
 * function, returns the address of the program's handler: the library has read the entry by a
 * system call of its own. */
ARCH_ANY_STACK __attribute__((used)) static uintptr_t
program_handler_enter(int number, siginfo_t *info, ucontext_t *context, unsigned which,
                      uintptr_t frame, ucontext_t *begin) {
    const struct programs_handler *const handler = &table[number].handlers[which];
    if (!arch_is_signal_frame_at(frame, info, context))
        return atomic_load(&handler->function);
    struct profiler_signal_stack *const own = profiler_signal_stacks_of(context);
    const signal_mask mask = mask_of(handler, own, number, context);
    const bool moves = is_to_move(own, frame, context);
    const bool stays = !moves && is_to_keep(own, frame, context);
    const bool disarms = program_stack_flags(own, &context->uc_stack) & STACK_DISARMS;
    const uintptr_t place = moves ? move_frame(own, frame, context) : frame;
    arch_begin_handler(begin, context, number, atomic_load(&handler->function), place, mask);
    if (stays)
        keep_frame(own, frame, context);
    if (moves || stays)
        arch_return_handler_to(begin, place, program_handler_returns);
    /* SS_AUTODISARM disables the stack while the handler runs. Its copy in the frame by which the
     * handler begins is disabled, too: in the kernel, or for the program alone. */
    if (disarms)
        begin->uc_stack =
            moves || stays ? program_stack_disabled(own) : (stack_t){.ss_flags = SS_DISABLE};
    return 0;
}

/* Ends a handler that returns on a frame that was moved or kept. By the kernel's rules the
 * alternate stack that the handler has set, or the one in its ucontext, becomes the program's. In
 * the kernel the profiler's stack is set again. */
__attribute__((used, noinline)) static void end_handler(ucontext_t *context) {
    struct profiler_signal_stack *const noted = arch_moved_frame_note(context);
    if (profiler_signal_stacks_include(noted))
        program_stack_restore(signal_thread_stack(noted), &context->uc_stack, (uintptr_t)context);
}

/* Does the same as end_handler(), but writes nothing to the stack, unless the handler's ucontext
 * has a stack that is new, or the handler has begun on another thread. The kernel leaves the memory
 * below the frame as it was, and a program may go back to a handler's function that has returned
 * (QEMU's and others' coroutines). */
__attribute__((used)) static void program_handler_leave(ucontext_t *context) {
    struct profiler_signal_stack *const own = arch_moved_frame_note(context);
    if (arch_is_noted(context) && signal_thread_is_of(own) &&
        program_stack_restore_known(own, &context->uc_stack, (uintptr_t)context))
        return;
    end_handler(context);
}

ARCH_DEFINE_HANDLER_ENTRY(entry_0, 0, program_handler_enter, sigreturn_by)
ARCH_DEFINE_HANDLER_ENTRY(entry_1, 1, program_handler_enter, sigreturn_by)
ARCH_DEFINE_HANDLER_ENTRY(entry_2, 2, program_handler_enter, sigreturn_by)
ARCH_DEFINE_HANDLER_ENTRY(entry_3, 3, program_handler_enter, sigreturn_by)

static void (*const entries[ENTRIES])(int, siginfo_t *, void *) = {entry_0, entry_1, entry_2,
                                                                   entry_3};

/* --- setting a handler --- */

static signal_mask mask_in(const struct sigaction *action) {
    signal_mask mask;
    memcpy(&mask, &action->sa_mask, sizeof mask);
    return mask & ~NOT_BLOCKED;
}

static bool stands_for(struct programs_handler *handler, const struct sigaction *action) {
    return atomic_load(&handler->function) == (uintptr_t)action->sa_sigaction &&
           atomic_load(&handler->mask) == mask_in(action) &&
           atomic_load(&handler->defers) == !(action->sa_flags & SA_NODEFER);
}

/* Returns the entry whose handler was set longest ago, for a new handler. Skips the entry of the
 * present handler: sigaction() is about to return that handler, and a signal may still call it. */
static uint32_t entry_to_replace(int number) {
    const uint32_t i = atomic_fetch_add(&table[number].sets, 1) % ENTRIES;
    const bool is_present =
        i == atomic_load(&table[number].last) && atomic_load(&table[number].handlers[i].function);
    return is_present ? atomic_fetch_add(&table[number].sets, 1) % ENTRIES : i;
}

static uint32_t entry_that_stands_for(int number, const struct sigaction *action) {
    uint32_t i = 0;
    while (i < ENTRIES && !stands_for(&table[number].handlers[i], action))
        i++;
    return i;
}

/* Returns the entry that represents `action`. Returns ENTRIES if there is none and the caller is a
 * child of vfork(), which must not change its parent's table. */
static uint32_t entry_for(int number, const struct sigaction *action, bool is_borrowed) {
    struct programs_handler *const handlers = table[number].handlers;
    uint32_t i = entry_that_stands_for(number, action);
    if (is_borrowed)
        return i;
    if (i < ENTRIES) {
        atomic_store(&table[number].last, i);
        return i;
    }
    atomic_store(&has_entries, true);
    i = entry_to_replace(number);
    atomic_store(&handlers[i].mask, mask_in(action));
    atomic_store(&handlers[i].defers, !(action->sa_flags & SA_NODEFER));
    atomic_store(&handlers[i].function, (uintptr_t)action->sa_sigaction);
    atomic_store(&table[number].last, i);
    return i;
}

/* Takes the address of the C library's rt_sigreturn from the sampling signal, for which libc has
 * set that address. */
static void find_sigreturn(void) {
    const int number = atomic_load(&sampler.timers.signal);
    const uintptr_t found = number ? arch_signal_restorer(number) : 0;
    if (found)
        sigreturn_by = found;
}

static bool has_handler(const struct sigaction *action) {
    return action->sa_handler != SIG_DFL && action->sa_handler != SIG_IGN;
}

/* Returns true if the handler is of Go's runtime. That runtime, with cgo, sets its handlers by
 * libc's function, but queries the kernel's alternate stack by itself. It sees ours, takes it for
 * its own, and ends the process if a handler runs on another stack. */
static bool is_gos(const struct sigaction *action) {
    const struct recorder *const recorder = sampler.recorder;
    struct cfi_tables tables;
    /* returns false while our constructor is still running, on another thread */
    if (!recorder || !recorder->unwinder ||
        modules_open(recorder->unwinder->modules, (uintptr_t)action->sa_sigaction,
                     profiler_tls.unloads, &tables) != MODULES_FOUND)
        return false;
    const bool is = object_has_go_note(&tables.segments);
    modules_close(recorder->unwinder->modules, &tables);
    return is;
}

struct sigaction program_handlers_wrap(int number, const struct sigaction *action,
                                       bool is_borrowed) {
    struct sigaction wrapped = *action;
    const bool is_entered = action->sa_flags & SA_ONSTACK || atomic_load(&includes_plain);
    if (!is_entered || !has_handler(action) || number <= 0 || number >= SIGNALS ||
        arch_has_shadow_stack() || is_gos(action))
        return wrapped;
    if (sigreturn_by == (uintptr_t)own_sigreturn)
        find_sigreturn();
    const uint32_t entry = entry_for(number, action, is_borrowed);
    if (entry == ENTRIES)
        return wrapped;
    wrapped.sa_sigaction = entries[entry];
    memset(&wrapped.sa_mask, 0xff, sizeof wrapped.sa_mask);
    return wrapped;
}

struct sigaction program_handlers_seen(int number, const struct sigaction *action) {
    struct sigaction seen = *action;
    for (uint32_t i = 0; i < ENTRIES && number > 0 && number < SIGNALS; i++) {
        const struct programs_handler *const handler = &table[number].handlers[i];
        if (action->sa_sigaction != entries[i])
            continue;
        const signal_mask mask = atomic_load(&handler->mask);
        seen.sa_handler = (sighandler_t)atomic_load(&handler->function);
        memset(&seen.sa_mask, 0, sizeof seen.sa_mask);
        memcpy(&seen.sa_mask, &mask, sizeof mask);
    }
    return seen;
}

static bool is_same(const struct sigaction *a, const struct sigaction *b) {
    return a->sa_sigaction == b->sa_sigaction && a->sa_flags == b->sa_flags &&
           mask_in(a) == mask_in(b);
}

/* Compares the action that it has replaced with the action that it had read, because the kernel has
 * no compare-and-swap of actions: in between another thread may set one, or the signal may reset it
 * (SA_RESETHAND). If the two differ, converts and sets the action that it has replaced. */
void program_handlers_convert(int number, action_conversion *convert) {
    enum { TRIES = 1000 }; /* a try fails only if the program sets an action meanwhile */
    struct sigaction expected;
    struct sigaction replaced;
    if (next_sigaction(number, NULL, &expected) != 0)
        return;
    struct sigaction wanted = convert(number, &expected);
    if (wanted.sa_sigaction == expected.sa_sigaction)
        return;
    for (int i = 0; i < TRIES && next_sigaction(number, &wanted, &replaced) == 0; i++) {
        if (is_same(&replaced, &expected))
            return;
        expected = wanted;
        wanted = convert(number, &replaced);
    }
}

/* --- handlers without SA_ONSTACK --- */

/* Returns whether the handler is the profiler's own, an entry included. */
static bool is_profilers(int number, const struct sigaction *action) {
    const struct unwinder *const unwinder = sampler.recorder->unwinder;
    const uintptr_t handler = (uintptr_t)action->sa_sigaction;
    return program_handlers_seen(number, action).sa_sigaction != action->sa_sigaction ||
           (handler >= unwinder->profiler_start && handler < unwinder->profiler_end);
}

/* Leaves handlers with SA_ONSTACK alone: their entries were decided when they were set. */
static struct sigaction with_entry(int number, const struct sigaction *kernels) {
    if (kernels->sa_flags & SA_ONSTACK || is_profilers(number, kernels))
        return *kernels;
    return program_handlers_wrap(number, kernels, false);
}

/* Gives no entry to an action that libc has not set: it may return by another rt_sigreturn. */
static void convert_plain(int first, int last) {
    enum { LIBCS_FIRST = 32, LIBCS_LAST = 33 };
    for (int number = first; number <= last; number++)
        if ((number < LIBCS_FIRST || number > LIBCS_LAST) &&
            arch_signal_restorer(number) == sigreturn_by)
            program_handlers_convert(number, with_entry);
}

bool program_handlers_may_give_entries(void) {
    if (!atomic_load(&includes_plain) || !sampler.on || seccomp_is_filtered())
        return false;
    if (sigreturn_by == (uintptr_t)own_sigreturn)
        find_sigreturn();
    return sigreturn_by != (uintptr_t)own_sigreturn;
}

/* Blocks signals, so that no handler leaves the conversion by a jump. Converts as a change of the
 * sampling signal, because the hooks of sigaction() wait for the end of such a change: otherwise an
 * action that another thread sets meanwhile would be replaced by an older one for a moment. If the
 * change of another thread does not end in time, converts nevertheless. */
void program_handlers_give_entries(int first, int last) {
    const int saved = errno;
    signal_mask before = 0;
    if (!program_handlers_may_give_entries())
        return;
    const bool is_change = sampler_begin_move_in_turn();
    const bool blocked = !is_change && signals_block(&before);
    convert_plain(first, last);
    if (is_change)
        sampler_end_move();
    else if (blocked)
        signals_restore(&before);
    errno = saved;
}

void program_handlers_give_all_entries(void) {
    if (atomic_load(&all_have_entries) || !program_handlers_may_give_entries())
        return;
    program_handlers_give_entries(1, SIGNALS - 1);
    program_stack_is_in_frames();
    atomic_store(&all_have_entries, true);
}

void program_handlers_include_plain(void) {
    if (arch_has_shadow_stack())
        return;
    atomic_store(&includes_plain, true);
    program_handlers_give_all_entries();
}

bool program_handlers_all_have_entries(void) {
    return atomic_load(&all_have_entries);
}

void program_handlers_unwrap(void) {
    const int saved = errno;
    if (!atomic_load(&has_entries))
        return;
    for (int number = 1; number < SIGNALS; number++)
        if (atomic_load(&table[number].sets))
            program_handlers_convert(number, program_handlers_seen);
    errno = saved;
}
