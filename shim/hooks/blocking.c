/* Hooks calls that may block (blocking_calls.def). Each hook publishes where its thread waits, and
 * forwards the call.
 *
 * A hook has a frame of its own, which the thread's stack shows, and no exception table: it holds
 * no resource, so cancellation and longjmp may skip it. Either leaves a stale slot, which the
 * slot's reader detects (wait_slot.h). A hook reads no clock, makes no system call, and does not
 * change errno; but it measures a wait for a lock (wait/contention.h), and may start the helper of
 * a forked child.
 *
 * A hook reads its caller's registers from its own frame, so it does not align the stack. That is
 * safe, because this file is compiled without vector registers, and calls functions that align the
 * stack themselves. */
#include "arch_caller.h"
#include "arch_forward.h"
#include "capture/binding/bound_calls.h"
#include "capture/capture.h"
#include "capture/record/wait_slot.h"
#include "capture/thread_life.h"
#include "capture/unwind/stack_memory.h"
#include "capture/wait/contention.h"
#include "entry.h"
#include "hooks.h"

#include <aio.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <mqueue.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

/* Starts the helper of a forked child that mostly waits, and so allocates too little to start
 * it. */
RARE static void offer_helper(enum wait_kind kind) {
    /* leaves out locks: allocators take locks, too, and a new thread may need the same locks */
    if (kind == WAIT_SLEEP || kind == WAIT_POLL || kind == WAIT_NET || kind == WAIT_ACCEPT ||
        kind == WAIT_PROCESS)
        capture_offer_helper();
}

/* Returns the slot in which the calling thread publishes its waits, or NULL if the thread has none,
 * or no profile needs waits now. */
static inline struct wait_slot *thread_wait_slot(enum wait_kind kind) {
    struct thread_state *const thread = profiler_tls.thread;
    const unsigned on = atomic_load_explicit(&wait_slots_on, memory_order_relaxed);
    if (!thread || on == WAIT_SLOTS_OFF)
        return NULL;
    if (__builtin_expect(on == WAIT_SLOTS_UNPOLLED, 0))
        offer_helper(kind);
    return &thread->wait_slot;
}

/* --- by name --- */

/* Holds the next definitions of these functions. */
IN_BOUND_CALLS static struct {
#define BLOCKING(kind, object, result, name, parameters, arguments) result(*name) parameters;
#include "blocking_calls.def"
} next_blocking_calls;

#define BLOCKING(kind, object, result, name, parameters, arguments)                                \
    BLOCKING_IF(true, kind, object, result, name, parameters, arguments)
#define BLOCKING_IF(condition, kind, object, result, name, parameters, arguments)                  \
    static result blocking_##name parameters {                                                     \
        const struct hook_caller caller = ARCH_CALLER(__builtin_frame_address(0));                 \
        struct wait_slot *const slot = thread_wait_slot(kind);                                     \
        if (!slot || !(condition))                                                                 \
            return next_blocking_calls.name arguments;                                             \
        wait_slot_begin(slot, &caller, kind, (uint64_t)(object));                                  \
        const result call_result = next_blocking_calls.name arguments;                             \
        wait_slot_end(slot);                                                                       \
        return call_result;                                                                        \
    }
#include "blocking_calls.def"

/* --- by number --- */

typedef long syscall_of_six(long number, long a, long b, long c, long d, long e, long f);

__attribute__((used)) IN_BOUND_CALLS static syscall_of_six *next_blocking_syscall;

enum { FUTEX_COMMANDS = ~(FUTEX_PRIVATE_FLAG | FUTEX_CLOCK_REALTIME) };
/* the value by which the program's lock marks waiters (Drepper, "Futexes Are Tricky", mutex 2);
 * Rust's locks use it, too */
enum { LOCKED_AND_WAITED_FOR = 2 };

#ifndef FUTEX_LOCK_PI2
#define FUTEX_LOCK_PI2 13 /* Linux 5.14 */
#endif

/* Remembers words that are not locks: a waiter has expected a value other than
 * LOCKED_AND_WAITED_FOR, as with a condition variable that counts. A colliding word replaces an
 * older one. */
enum { COUNTERS = 64 };
static _Atomic uintptr_t counters[COUNTERS];

static bool waits_for_lock(long word, uint32_t expected, long timeout) {
    const uint64_t place = (uint64_t)word * UINT64_C(0x9e3779b97f4a7c15) >> 58;
    _Atomic uintptr_t *const counter = &counters[place % COUNTERS];
    const bool is_counter = atomic_load_explicit(counter, WAIT_SLOT_RELAXED) == (uintptr_t)word;
    if (expected != LOCKED_AND_WAITED_FOR && !is_counter)
        atomic_store_explicit(counter, (uintptr_t)word, WAIT_SLOT_RELAXED);
    return expected == LOCKED_AND_WAITED_FOR && !timeout && !is_counter;
}

/* Returns the kind of a PI futex; a word that cannot be read counts as having no holder. */
RARE static uint32_t kind_of_pi_futex(long word) {
    return WAIT_LOCK | (memory_is_readable((uintptr_t)word) ? LOCK_PI_FUTEX : LOCK_SILENT);
}

/* Returns the kind in the form of the slot, with the lock's layout. */
static uint32_t kind_of_futex(long word, long command, long expected, long timeout) {
    switch (command & FUTEX_COMMANDS) {
    case FUTEX_WAIT:
    case FUTEX_WAIT_BITSET:
        return waits_for_lock(word, (uint32_t)expected, timeout) ? WAIT_LOCK | LOCK_SILENT
                                                                 : WAIT_FUTEX;
    case FUTEX_LOCK_PI:
    case FUTEX_LOCK_PI2:
        return kind_of_pi_futex(word);
    case FUTEX_WAIT_REQUEUE_PI:
        return WAIT_COND;
    default:
        return WAIT_NONE;
    }
}

static uint32_t kind_of_number(long number, long a, long b, long c, long d) {
    if (number == SYS_futex)
        return kind_of_futex(a, b, c, d);
    return number == SYS_epoll_pwait2 ? WAIT_POLL : WAIT_FUTEX;
}

/* Forwards a call by number; the assembler below calls this function. */
__attribute__((used)) static long wait_by_number(long number, long a, long b, long c, long d,
                                                 long e, long f) {
    const struct hook_caller caller = ARCH_CALLER(__builtin_frame_address(0));
    const uint32_t kind = kind_of_number(number, a, b, c, d);
    if (wait_slot_kind(kind) == WAIT_LOCK &&
        atomic_load_explicit(&capture.armed, WAIT_SLOT_RELAXED)) {
        const struct contention contention =
            contention_begin(&capture.recorder, &caller, kind, (const void *)a);
        const long call_result = next_blocking_syscall(number, a, b, c, d, e, f);
        contention_end(&capture.recorder, &contention);
        return call_result;
    }
    struct wait_slot *const slot =
        kind == WAIT_NONE ? NULL : thread_wait_slot(wait_slot_kind(kind));
    if (!slot)
        return next_blocking_syscall(number, a, b, c, d, e, f);
    wait_slot_begin(slot, &caller, kind, (uint64_t)a);
    const long call_result = next_blocking_syscall(number, a, b, c, d, e, f);
    wait_slot_end(slot);
    return call_result;
}

#ifndef SYS_futex_waitv
#define SYS_futex_waitv 449 /* Linux 5.16 */
#endif
#ifndef SYS_epoll_pwait2
#define SYS_epoll_pwait2 441 /* Linux 5.11 */
#endif

/* Forwards all other calls by number unchanged, because a child of a clone may return on another
 * stack. */
ARCH_DEFINE_NUMBERED_FORWARD(blocking_syscall, SYS_futex, SYS_futex_waitv, SYS_epoll_pwait2,
                             wait_by_number, next_blocking_syscall)

/* --- the table --- */

enum { WAITS_ARE_WANTED = PROFILE_OFF_CPU | PROFILE_SCHED_DELAY | PROFILE_LOCK | PROFILE_THREADS };

/* Consists of statements, not of a table: the addresses in a table would be relocated in every
 * process.
 */
void hooks_blocking_start(unsigned types) {
    if (!(types & WAITS_ARE_WANTED))
        return;
#define BLOCKING(kind, object, result, name, parameters, arguments)                                \
    bound_calls_add(#name, (void *)blocking_##name, (void **)(void *)&next_blocking_calls.name);
#include "blocking_calls.def"
    bound_calls_add("syscall", (void *)blocking_syscall, (void **)(void *)&next_blocking_syscall);
    hooks_locks_add();
    bound_calls_start();
}
