#include "program_handlers.h"

#include "arch_signal_frame.h"
#include "go_note.h"
#include "kernel/signals_blocked.h"
#include "program_stack.h"
#include "record/thread_table.h"
#include "sampler.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum { SIGNALS = 65, ENTRIES = 4 };

/* A handler that an entry stands for. */
struct programs_handler {
    _Atomic uintptr_t function; /* 0: none; written behind the mask */
    _Atomic signal_mask mask;
    _Atomic bool defers; /* without SA_NODEFER: its own signal is blocked, too */
};

static struct {
    struct programs_handler handlers[ENTRIES];
    _Atomic uint32_t sets;
} table[SIGNALS];

/* --- entering a handler --- */

ARCH_DEFINE_HANDLER_RETURN(program_handler_returns, program_handler_leave);

static uintptr_t move_frame(struct own_signal_stack *own, uintptr_t frame,
                            const ucontext_t *context) {
    stack_t *const programs = &own->programs;
    const uintptr_t below = arch_interrupted_sp(context) - FRAME_RED_ZONE;
    const bool is_on_it = program_stack_has(programs, below);
    const bool enters_it = programs->ss_size && !is_on_it;
    const uintptr_t low = (uintptr_t)programs->ss_sp;
    const struct signal_frame_place place =
        arch_place_signal_frame(enters_it ? low + programs->ss_size : below, context);
    if ((is_on_it || enters_it) && place.frame - low > programs->ss_size)
        arch_fault();
    arch_move_signal_frame(&place, frame, programs, program_handler_returns);
    if (enters_it && (programs->ss_flags & STACK_DISARMS))
        *programs = (stack_t){.ss_flags = SS_DISABLE};
    return place.frame;
}

/* A frame that is not on our stack is where the kernel would have put it: the thread is not known
 * to us, or has set an alternate stack by a system call of its own. A handler that has interrupted
 * code on our stack, which is one that came past our hooks, stays there. */
static bool is_to_move(const struct own_signal_stack *own, uintptr_t frame, const siginfo_t *info,
                       const ucontext_t *context) {
    return own && own_signal_stack_has(own, frame) &&
           !own_signal_stack_has(own, arch_interrupted_sp(context)) &&
           arch_is_signal_frame_at(frame, info, context);
}

static signal_mask mask_of(const struct programs_handler *handler, int number,
                           const ucontext_t *context) {
    signal_mask before;
    memcpy(&before, &context->uc_sigmask, sizeof before);
    return before | atomic_load(&handler->mask) |
           (atomic_load(&handler->defers) ? signal_bit(number) : 0);
}

__attribute__((used)) static void program_handler_enter(int number, siginfo_t *info,
                                                        ucontext_t *context, unsigned which,
                                                        uintptr_t frame, ucontext_t *begin) {
    struct own_signal_stack *const own = own_tls.signal_stack;
    const struct programs_handler *const handler = &table[number].handlers[which];
    const signal_mask mask = mask_of(handler, number, context);
    const bool moves = is_to_move(own, frame, info, context);
    const uintptr_t place = moves ? move_frame(own, frame, context) : frame;
    arch_begin_handler(begin, context, number, atomic_load(&handler->function), place, mask);
    /* The kernel has taken the stack away while the handler runs, and is not to set it again. */
    if (!moves && (context->uc_stack.ss_flags & STACK_DISARMS))
        begin->uc_stack = (stack_t){.ss_flags = SS_DISABLE};
}

/* The handler returns on a moved frame: what it has set, and what its ucontext says, become the
 * program's alternate stack by the kernel's rules, and the kernel sets ours. */
__attribute__((used)) static void program_handler_leave(ucontext_t *context) {
    struct own_signal_stack *const own = own_tls.signal_stack;
    if (!own)
        return;
    program_stack_restore(own, &context->uc_stack, (uintptr_t)context);
    context->uc_stack = own_signal_stack_setting(own);
}

ARCH_DEFINE_HANDLER_ENTRY(entry_0, 0, program_handler_enter)
ARCH_DEFINE_HANDLER_ENTRY(entry_1, 1, program_handler_enter)
ARCH_DEFINE_HANDLER_ENTRY(entry_2, 2, program_handler_enter)
ARCH_DEFINE_HANDLER_ENTRY(entry_3, 3, program_handler_enter)

static void (*const entries[ENTRIES])(int, siginfo_t *, void *) = {entry_0, entry_1, entry_2,
                                                                   entry_3};

/* --- setting a handler --- */

static signal_mask mask_in(const struct sigaction *action) {
    signal_mask mask;
    memcpy(&mask, &action->sa_mask, sizeof mask);
    return mask;
}

static bool stands_for(struct programs_handler *handler, const struct sigaction *action) {
    return atomic_load(&handler->function) == (uintptr_t)action->sa_sigaction &&
           atomic_load(&handler->mask) == mask_in(action) &&
           atomic_load(&handler->defers) == !(action->sa_flags & SA_NODEFER);
}

/* The entry that stands for it; the one that was set longest ago gives way to a new one. */
static uint32_t entry_for(int number, const struct sigaction *action) {
    struct programs_handler *const handlers = table[number].handlers;
    for (uint32_t i = 0; i < ENTRIES; i++)
        if (stands_for(&handlers[i], action))
            return i;
    const uint32_t i = atomic_fetch_add(&table[number].sets, 1) % ENTRIES;
    atomic_store(&handlers[i].mask, mask_in(action));
    atomic_store(&handlers[i].defers, !(action->sa_flags & SA_NODEFER));
    atomic_store(&handlers[i].function, (uintptr_t)action->sa_sigaction);
    return i;
}

static bool has_handler(const struct sigaction *action) {
    return action->sa_handler != SIG_DFL && action->sa_handler != SIG_IGN;
}

/* Go's runtime, with cgo, sets its handlers by libc's function, but asks the kernel for the
 * alternate stack by itself. It sees ours, takes it for its own, and ends the process if a handler
 * runs elsewhere. */
static bool is_gos(const struct sigaction *action) {
    const struct recorder *const recorder = sampler.recorder;
    struct cfi_tables tables;
    if (!recorder || !recorder->unwinder || /* another thread is in our constructor */
        modules_open(recorder->unwinder->modules, (uintptr_t)action->sa_sigaction, own_tls.unloads,
                     &tables) != MODULES_FOUND)
        return false;
    const bool is = object_has_go_note(&tables.segments);
    modules_close(recorder->unwinder->modules, &tables);
    return is;
}

struct sigaction program_handlers_wrap(int number, const struct sigaction *action) {
    struct sigaction wrapped = *action;
    if (!(action->sa_flags & SA_ONSTACK) || !has_handler(action) || number <= 0 ||
        number >= SIGNALS || arch_has_shadow_stack() || is_gos(action))
        return wrapped;
    wrapped.sa_sigaction = entries[entry_for(number, action)];
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
