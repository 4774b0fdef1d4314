/* Holds one user's program starts, and decides for the crash guard (crash_guard.h) which programs
 * keep crashing.
 *
 * The record is a file of fixed size that all processes of the user read and write without a lock,
 * so that none blocks. Each start takes one entry and writes it by one call. An entry that two
 * starts write at once, or that is read during a write, is invalid. So a start may be lost, which
 * delays the guard, but none is invented.
 * A process marks its own start as completed by a time that is written into it: it has lived long
 * enough, or has ended by itself. A start that is not completed, and whose process is gone, has
 * failed.
 * Times are CLOCK_BOOTTIME, in nanoseconds: that clock is never set, and the record does not
 * outlive a boot. Times in the future are ignored.
 * Context: any. Async-signal-safe: yes.
 */
#ifndef OTELPROF_CRASH_RECORD_H
#define OTELPROF_CRASH_RECORD_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

enum {
    CRASH_COMPLETED_S = 30,  /* a start is completed after this time */
    CRASH_WINDOW_S = 600,    /* failed starts within this time count together */
    CRASH_PAUSE_S = 3600,    /* the executable is not profiled for so long */
    CRASH_MOST_FAILURES = 3, /* the next start is not profiled */
    CRASH_OVERDUE_S = 120,   /* without a visible process a start has failed after this time */
    CRASH_STARTS = 120,
    CRASH_PAUSES = 31,
    CRASH_MOST_PROBES = 32, /* checks of other processes, at one start */
};

struct crash_start {
    uint64_t executable;      /* hash of the file's identity, not of its name; 0: none */
    uint64_t pid_namespace;   /* its inode */
    uint64_t process_started; /* process_stat.h; with the pid it identifies the process */
    int64_t began_nano;
    struct timespec completed; /* not 0 once completed; not part of the check */
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
    CRASH_FAILS,      /* too many starts failed, and that is not logged yet */
    CRASH_LEFT_ALONE, /* CRASH_FAILS was found less than an hour ago */
};

/* Computes the check of `start`, which makes it valid. */
void crash_record_seal(struct crash_start *start);

/* Returns the verdict on the start `own`, at the time that it began. Calls `is_gone` for starts of
 * the same executable that are not completed, at most CRASH_MOST_PROBES times. */
enum crash_verdict
crash_record_judge(const struct crash_record *record, const struct crash_start *own,
                   bool (*is_gone)(const struct crash_start *start, const struct crash_start *own));

/* Returns the entry for `own`: that of the same process's start (exec keeps the process), else one
 * that no longer counts, else the oldest. */
uint32_t crash_record_place(const struct crash_record *record, const struct crash_start *own);

/* Returns the entry for a pause of the executable from `now` on, chosen likewise. */
uint32_t crash_record_pause_place(const struct crash_record *record, uint64_t executable,
                                  int64_t now);

#endif
