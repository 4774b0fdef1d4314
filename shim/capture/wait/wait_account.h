/* What the helper knows of each thread's waits: where it saw it wait last, under which stack, and
 * what it has taken off the thread's account (record/wall_time.h) and not recorded yet.
 *
 * An account belongs to a slot of the table of threads, and to the thread that was in it when it
 * was begun. Context: the helper, unless it says otherwise.
 */
#ifndef OTELPROF_WAIT_ACCOUNT_H
#define OTELPROF_WAIT_ACCOUNT_H

#include "idle_waits.h"
#include "kernel_thread.h"
#include "record/thread_table.h"

#include <stdbool.h>
#include <stdint.h>

struct wait_account {
    uint64_t begun; /* wall_time.begun of the thread that it is of; 0: it is of none */
    uint32_t tid;
    bool waits;       /* it was in the wait that follows when it was looked at last */
    bool is_hooked;   /* the wait is that of its slot, with the number `sequence` */
    uint8_t flags;    /* SAMPLE_* of the stack */
    bool skips_delay; /* its run-queue delay until now is in no sample: it was off */
    uint32_t frame_count;
    uint64_t sequence;
    uint64_t interval;     /* of the frames, as harvest_sample.interval */
    uint64_t since;        /* CLOCK_MONOTONIC: when it was first seen in this wait */
    struct span_seen seen; /* in this wait, for certain; all 0: nobody asks (settings.h) */
    uint64_t then;         /* and when it was last sampled or settled there, */
    uint64_t off_then;     /* with so much time off CPU until then, */
    uint64_t cpu;          /* and its CPU clock */
    uint64_t owed;         /* nanoseconds of this wait, to be recorded */
    uint64_t delay;        /* of its run-queue delay: recorded so far */
    uint64_t false_delay;  /* what the kernel says more than there can be */
    uint64_t looked;       /* CLOCK_MONOTONIC: when its CPU clock was read last */
    uint64_t looked_cpu;
    struct thread_files files;
    uint32_t lock_kind;    /* the slot's, of a wait for a lock; 0: of another */
    uint64_t holder_since; /* `since` of the wait that the lock's holder was found in; 0: of none */
    const struct thread_state *holder; /* NULL: it is not known, or not a thread of ours */
    struct wait_detail detail;
    struct idle_waits idle;
    bool has_context;
    struct sample_context context; /* what the thread works for */
    uint64_t frames[];             /* of thread_table.max_depth */
};

struct wait_accounts {
    uint32_t max_depth;
    struct wait_account *segments[THREAD_SEGMENTS];
};

/* NULL: no memory. Context: calm, at start. */
struct wait_accounts *wait_accounts_open(uint32_t max_depth);

/* That of the thread in slot `index`; NULL: no memory. */
struct wait_account *wait_account_at(struct wait_accounts *accounts, uint32_t index);

/* Of what a thread waits for nothing is known any more. Context: fork handler. */
void wait_accounts_after_fork(struct wait_accounts *accounts);

#endif
