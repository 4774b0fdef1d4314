/* The helper's knowledge of each thread's waits: the wait that it saw last, its stack, and the time
 * that it has taken off the thread's account (record/wall_time.h) but not recorded yet.
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
 * A thread that ends the process waits for the last export in the profiler's code, which is no wait
 * of the program's: its account ends where that begins (wall_leave()), wait_observe() keeps a wait
 * that it was interrupted in, and else notes its stack (is_last_state).
 *
 * At the end of the process, and when the types change, wait_record_remainder() records the time
 * off CPU that no wait has, without a change of state. If a sample finds no memory, its time goes
 * back to the thread's account. wait_is_same() decides if a wait is the same: its slot, or without
 * a slot the CPU clock, has not changed.
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
    bool waits;          /* the last observation found the thread in the wait below */
    bool is_hooked;      /* the wait is that of its slot, with the number `sequence` */
    bool is_last_state;  /* no wait, but the stack with which the thread ends the process */
    uint8_t flags;       /* SAMPLE_* of the stack */
    bool discards_delay; /* run-queue delay until now is not recorded: profiling was off */
    uint32_t frame_count;
    uint64_t sequence;
    uint64_t interval;      /* of the frames, as harvest_sample.interval */
    uint64_t wait_start_ns; /* CLOCK_MONOTONIC: when this wait was first seen */
    struct span_seen seen;  /* when it was certainly in this wait; 0: not wanted (settings.h) */
    uint64_t last_seen_ns;  /* CLOCK_MONOTONIC: when it was last observed or reconciled, */
    uint64_t off_cpu_at_last_seen_ns; /* its time off CPU until then, */
    uint64_t cpu_ns;                  /* and its CPU clock at that time */
    uint64_t pending_ns;              /* time of this wait that is not recorded yet */
    uint64_t delay_ns;                /* run-queue delay that is recorded */
    uint64_t false_delay_ns;          /* the excess of the kernel's delay over the possible one */
    uint64_t cpu_read_ns;             /* CLOCK_MONOTONIC: when its CPU clock was last read, */
    uint64_t cpu_at_read_ns;
    struct thread_files files;
    uint32_t lock_kind;            /* the slot's kind, if the wait is for a lock; 0: it is not */
    uint64_t holder_wait_start_ns; /* start of the wait that the lock's holder is in; 0: none */
    const struct thread_state *holder; /* NULL: not known, or no thread of the table */
    struct wait_detail detail;
    struct idle_waits idle;
    bool has_context;
    struct sample_context context; /* the request or span that the thread works for */
    uint64_t frames[];             /* room for thread_table.max_depth */
};

struct wait_accounts {
    uint32_t max_depth;
    struct wait_account *segments[THREAD_SEGMENTS];
};

/* Returns NULL if there is no memory. Context: calm, at start. */
struct wait_accounts *wait_accounts_open(uint32_t max_depth);

/* Returns the account of slot `index`; NULL: no memory. */
struct wait_account *wait_account_at(struct wait_accounts *accounts, uint32_t index);

/* Forgets all waits in a forked child. Context: fork handler. */
void wait_accounts_after_fork(struct wait_accounts *accounts);

#endif
