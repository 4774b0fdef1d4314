#include "signals_blocked.h"

#include "first_page.h"
#include "profiler_time.h"
#include "wait.h"

/* Bounds the yields and sleeps of one wait. A yield runs a thread that waits for this processor; a
 * thread that is woken on another processor runs within some microseconds. The sleeps, of some 0.1
 * ms each, let a thread of lower priority run, too. */
enum { TURNS = 16, SLEEPING_ROUNDS = 10 };
/* Waits for a signal only one time in 64 (2 to the power of MOST_TIMEOUTS), once MOST_TIMEOUTS
 * consecutive waits for it had no effect. */
enum { MOST_TIMEOUTS = 6, SIGNALS = 64 };

IN_FIRST_PAGE struct signals_shared signals_shared;

/* Holds the state of each signal, for the whole process. Two threads may update it at once, without
 * a lock: then one wait more, or one less, is made. */
static struct {
    _Atomic uint8_t timeouts; /* consecutive waits without effect, at most MOST_TIMEOUTS */
    _Atomic uint8_t left;     /* number of waits to skip because of the timeouts */
} history[SIGNALS];

void signals_give_way_to(const _Atomic int32_t *threads, const _Atomic int *sampling_signal) {
    signals_shared.sampling_signal = sampling_signal;
    signals_shared.threads = threads;
}

static bool no_thread_gives_way(void *unused) {
    (void)unused;
    return atomic_load(&signals_shared.giving_way) == 0;
}

/* Bounds its wait, because a forked child inherits its parent's count of threads that were giving
 * way. */
void signals_ask_no_more(void) {
    atomic_store(&signals_shared.unasked, true);
    (void)wait_for_rounds(no_thread_gives_way, NULL, 2 * SLEEPING_ROUNDS);
}

struct turn {
    signal_mask before;
    signal_mask left_out; /* signals for which the thread does not sleep */
    signal_mask seen;
    signal_mask pending; /* signals that are pending now */
};

static bool nothing_is_pending(void *context) {
    struct turn *const turn = context;
    if (atomic_load(&signals_shared.unasked)) /* pairs with signals_ask_no_more() */
        return true;
    turn->pending = signals_to_give_way(turn->before);
    turn->seen |= turn->pending;
    return !(turn->pending & ~turn->left_out);
}

static signal_mask skipped_signals(signal_mask pending) {
    signal_mask without = 0;
    for (unsigned i = 0; i < SIGNALS; i++) {
        const uint8_t left = atomic_load_explicit(&history[i].left, memory_order_relaxed);
        if (!(pending >> i & 1) || left == 0)
            continue;
        without |= UINT64_C(1) << i;
        atomic_store_explicit(&history[i].left, left - 1, memory_order_relaxed);
    }
    return without;
}

static void signals_note(const struct turn *turn) {
    const signal_mask timeouts = turn->pending & ~turn->left_out;
    const signal_mask taken = turn->seen & ~turn->pending;
    for (unsigned i = 0; i < SIGNALS; i++) {
        /* number of timeouts; stays 0 for a signal that another thread took */
        uint8_t count = 0;
        if (timeouts >> i & 1) {
            count = atomic_load_explicit(&history[i].timeouts, memory_order_relaxed);
            count = count < MOST_TIMEOUTS ? count + 1 : MOST_TIMEOUTS;
        } else if (!(taken >> i & 1))
            continue;
        atomic_store_explicit(&history[i].timeouts, count, memory_order_relaxed);
        atomic_store_explicit(&history[i].left, (1U << count) - 1, memory_order_relaxed);
    }
}

void signals_give_way(signal_mask before) {
    struct turn turn = {.before = before, .left_out = 0, .seen = 0, .pending = 0};
    atomic_fetch_add(&signals_shared.giving_way, 1);
    bool over = nothing_is_pending(&turn);
    for (int i = 0; !over && i < TURNS; i++) {
        (void)arch_system_call(SYS_sched_yield, 0, 0, 0, 0, 0, 0);
        over = nothing_is_pending(&turn);
    }
    if (!over) {
        turn.left_out = skipped_signals(turn.pending);
        (void)wait_for_rounds(nothing_is_pending, &turn, SLEEPING_ROUNDS);
    }
    atomic_fetch_sub(&signals_shared.giving_way, 1);
    signals_note(&turn);
}

PROFILER_TIME void signals_restore(const signal_mask *before) {
    signals_leave_to_others(*before);
    (void)signals_change(SIG_SETMASK, before, NULL);
}
