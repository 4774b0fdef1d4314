/* Keeps the helper's data of each thread's waits: the wait that the helper saw last, its stack, and
 * the time that the helper has taken off the thread's account (record/wall_time.h) but not recorded
 * yet.
 *
 * An account belongs to a slot of the thread table, and to the thread that had the slot when the
 * account began. Its states, and the functions that change them:
 *
 *   begun_ns = 0           NO THREAD <---------------------------------------+
 *                              | wait_account_of():                          |
 *                              | a thread has the slot                       | wait_account_of():
 *                              v                                             | the thread is gone,
 *   waits = false      +-> NOT WAITING --------------------------------------+ pending_ns is
 *                      |       | wait_observe() finds it blocked: takes the  | recorded
 *                      |       | time off CPU so far into pending_ns         |
 *                      |       v                                             |
 *   waits = true       |    WAITING -----------------------------------------+
 *                      |     |  ^ |
 *                      +-----+  | | wait_continue(): the same wait, pending_ns grows;
 *       wait_observe(): it is   | | is recorded if long, or if the lock's holder changes
 *       running; wait_discard():| | wait_reconcile(): at a harvest, pending_ns is recorded
 *       types were off          | | wait_observe(): another wait, after wait_reconcile()
 *                               +-+
 *
 * A thread that ends the process waits for the last export in the profiler's code. That is no wait
 * of the program's, so the account ends where it begins (wall_leave()). If the thread was
 * interrupted in a wait, wait_observe() keeps that wait; otherwise it notes the thread's stack
 * (is_last_state).
 *
 * At the end of the process, and when the types change, wait_record_remainder() records the time
 * off CPU that no wait has, without a change of state. If a sample finds no memory, its time goes
 * back to the thread's account. wait_is_same() decides whether a wait is the same: the slot, or
 * without a slot the CPU clock, has not changed.
 *
 * Context: the helper, unless a function says otherwise.
 */
#ifndef OTELPROF_WAIT_ACCOUNT_H
#define OTELPROF_WAIT_ACCOUNT_H

#include "idle_waits.h"
#include "kernel_thread.h"
#include "record/thread_table.h"

#include <stdbool.h>
#include <stdint.h>

struct wait_account {
    uint64_t begun_ns; /* wall_time.begun_ns of the thread; 0: no thread */
    uint32_t tid;
    bool waits;     /* the last observation found the thread in the wait below */
    bool is_hooked; /* a hook announced this wait; `sequence` was then the slot's number */
    /* there is no wait, only the stack with which the thread ends the process */
    bool is_last_state;
    uint8_t flags;       /* SAMPLE_FLAG_* of the wait's stack */
    bool discards_delay; /* run-queue delay until now is not recorded, because profiling was off */
    uint32_t frame_count;
    uint64_t sequence;
    uint64_t interval;      /* interval of the frames' addresses: harvest_sample.interval */
    uint64_t wait_start_ns; /* CLOCK_MONOTONIC: when this wait was first seen */
    /* times at which the thread was certainly in this wait; 0: not wanted (settings.h) */
    struct span_seen seen;
    uint64_t last_seen_ns; /* CLOCK_MONOTONIC: when the thread was last observed or reconciled */
    uint64_t off_cpu_at_last_seen_ns; /* the thread's time off CPU until last_seen_ns */
    uint64_t cpu_ns;                  /* the thread's CPU clock at last_seen_ns */
    uint64_t pending_ns;              /* time of this wait that is not recorded yet */
    uint64_t delay_ns; /* the part of the thread's run-queue delay that is recorded */
    /* run-queue delay that the kernel reports beyond the possible maximum */
    uint64_t false_delay_ns;
    /* CLOCK_MONOTONIC: when the thread's CPU clock was last read */
    uint64_t cpu_read_ns;
    uint64_t cpu_at_read_ns;
    struct thread_files files;
    /* if the thread waits for a lock: the kind in its slot; otherwise 0 */
    uint32_t lock_kind;
    /* CLOCK_MONOTONIC: when the lock's holder began its own wait; 0: it does not wait; UINT64_MAX:
     * it ends the process */
    uint64_t holder_wait_start_ns;
    /* the lock's holder; NULL: not known, or not in the thread table */
    const struct thread_state *holder;
    struct wait_detail detail;
    struct idle_waits idle;
    bool has_context;
    struct sample_context context; /* the request or span that the thread works for */
    uint64_t frames[];             /* room for thread_table.max_depth frames */
};

struct wait_accounts {
    uint32_t max_depth;
    struct wait_account *segments[THREAD_SEGMENTS];
};

/* Allocates the accounts. Returns NULL if there is no memory. Context: calm, at start. */
struct wait_accounts *wait_accounts_open(uint32_t max_depth);

/* Returns the account of slot `index`; NULL: no memory. */
struct wait_account *wait_account_at(struct wait_accounts *accounts, uint32_t index);

/* Forgets all waits in a forked child. Context: fork handler. */
void wait_accounts_after_fork(struct wait_accounts *accounts);

#endif
