/* Holds one user's program starts, and decides for the crash guard (crash_guard.h) which programs
 * keep crashing.
 *
 * The record is a file of fixed size that all processes of the user read and write without a lock,
 * so that no process blocks. Each start takes one entry and writes it by one call. An entry that
 * two starts write at once, or that is read during a write, is invalid. So a start may be lost,
 * which delays the guard, but no start is invented. When a process has lived long enough, or ends
 * by itself, it writes the time into its entry: that completes the start. A start has failed if it
 * is not completed and its process has ended. Times are CLOCK_BOOTTIME, in nanoseconds: no program
 * can set that clock, and the record does not outlive a boot. Times in the future are ignored.
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
    CRASH_PAUSE_S = 3600,    /* an executable that fails is not profiled for so long */
    CRASH_MOST_FAILURES = 3, /* after so many failures the next start is not profiled */
    /* a start whose process cannot be checked has failed after this time */
    CRASH_OVERDUE_S = 120,
    CRASH_STARTS = 120,
    CRASH_PAUSES = 31,
    CRASH_MOST_PROBES = 32, /* at most so many processes are checked at one start */
};

struct crash_start {
    /* hash of the file's identity, not of its name; 0: the entry is empty */
    uint64_t executable;
    uint64_t pid_namespace; /* inode of the pid namespace */
    /* start time of the process (process_stat.h); together with the pid it identifies the
     * process */
    uint64_t process_started;
    int64_t began_nano;
    struct timespec completed; /* 0: not completed; not part of the check */
    uint64_t pid;
    uint64_t check; /* written by crash_record_seal() */
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
    CRASH_FAILS,      /* too many starts failed, and no process has logged that yet */
    CRASH_LEFT_ALONE, /* CRASH_FAILS was found less than an hour ago */
};

/* Computes the check of `start`, which makes it valid. */
void crash_record_seal(struct crash_start *start);

/* Returns the verdict on the start `own`, at the time of that start. Calls `is_gone` for starts of
 * the same executable that are not completed, at most CRASH_MOST_PROBES times. */
enum crash_verdict
crash_record_judge(const struct crash_record *record, const struct crash_start *own,
                   bool (*is_gone)(const struct crash_start *start, const struct crash_start *own));

/* Returns the entry for `own`: the entry of an earlier start of the same process (exec keeps the
 * process), else an entry that no longer counts, else the oldest. */
uint32_t crash_record_place(const struct crash_record *record, const struct crash_start *own);

/* Returns the entry for a pause of the executable from `now` on, chosen as by
 * crash_record_place(). */
uint32_t crash_record_pause_place(const struct crash_record *record, uint64_t executable,
                                  int64_t now);

#endif
