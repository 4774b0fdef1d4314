/* What the crash guard (crash_guard.h) knows of one user's programs, and its judgement.
 *
 * The record is a file of fixed size that all processes of the user read and write, without a lock
 * that they could wait for. Each start takes one place and writes it by one call; a place that two
 * take at once, or that is read while it is written, is worth nothing. So a start may be forgotten,
 * and none is made up: what is lost delays the guard.
 * A process settles its own start, by a time that is written into it: it lives, or has ended by
 * itself. A start that is not settled, and whose process is gone, has failed.
 * Times are CLOCK_BOOTTIME, in nanoseconds: nobody sets that clock, and the record does not outlive
 * a boot. What lies in the future is not believed.
 * Context: any. Async-signal-safe: yes.
 */
#ifndef OTELPROF_CRASH_RECORD_H
#define OTELPROF_CRASH_RECORD_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

enum {
    CRASH_SETTLES_S = 30,    /* who has lived so long is well */
    CRASH_WINDOW_S = 600,    /* in which failed starts count together */
    CRASH_PAUSE_S = 3600,    /* for which the executable is left alone */
    CRASH_MOST_FAILURES = 3, /* and the next start is left alone */
    CRASH_OVERDUE_S = 120,   /* a process that is not shown has settled by then, or never will */
    CRASH_STARTS = 120,
    CRASH_PAUSES = 31,
    CRASH_MOST_LOOKS = 32, /* for other processes, at one start */
};

struct crash_start {
    uint64_t executable;      /* a hash of what the file is, not of its name; 0: none */
    uint64_t pid_namespace;   /* its inode */
    uint64_t process_started; /* process_stat.h; with the pid, this is the process */
    int64_t began_nano;
    struct timespec settled; /* any time, once it is; not part of the check */
    uint64_t pid;
    uint64_t check; /* crash_record_seal() */
};

struct crash_pause {
    uint64_t executable;
    int64_t since_nano;
};

struct crash_record {
    uint64_t reserved[2];
    struct crash_pause pauses[CRASH_PAUSES];
    struct crash_start starts[CRASH_STARTS];
};
_Static_assert(sizeof(struct crash_start) == 64, "none lies on two pages");
_Static_assert(sizeof(struct crash_record) == 8192, "whole pages");

enum crash_verdict {
    CRASH_ADMITTED,
    CRASH_FAILS,      /* too many starts failed, and nobody has said so */
    CRASH_LEFT_ALONE, /* that was found less than an hour ago */
};

/* Makes what stands in `start` valid. */
void crash_record_seal(struct crash_start *start);

/* What becomes of the start `own`, at the time that it began. `is_gone` is asked of starts of the
 * same executable that are not settled, at most CRASH_MOST_LOOKS times. */
enum crash_verdict
crash_record_judge(const struct crash_record *record, const struct crash_start *own,
                   bool (*is_gone)(const struct crash_start *start, const struct crash_start *own));

/* Where `own` is to stand: in place of the same process's start (exec keeps the process), of one
 * that counts no more, or of the oldest. */
uint32_t crash_record_place(const struct crash_record *record, const struct crash_start *own);

/* Where it is to stand that an executable is left alone from `now` on: as above. */
uint32_t crash_record_pause_place(const struct crash_record *record, uint64_t executable,
                                  int64_t now);

#endif
