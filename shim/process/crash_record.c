#include "crash_record.h"

#include "clock.h"
#include "hash.h"

#include <stddef.h>

/* --- starts and pauses that still count --- */

static bool happened_within(int64_t then, int64_t now, int64_t seconds) {
    return then <= now && now - then < seconds * (int64_t)NANO_PER_SECOND;
}

static uint64_t crash_start_check(const struct crash_start *start) {
    const uint64_t words[] = {start->executable, start->pid_namespace, start->process_started,
                              (uint64_t)start->began_nano, start->pid};
    return hash_words(1, words, sizeof words / sizeof *words);
}

void crash_record_seal(struct crash_start *start) {
    start->check = crash_start_check(start);
}

static bool start_counts(const struct crash_start *start, int64_t now) {
    return start->executable && start->completed.tv_sec == 0 && start->completed.tv_nsec == 0 &&
           happened_within(start->began_nano, now, CRASH_WINDOW_S) &&
           start->check == crash_start_check(start);
}

static bool is_same_process(const struct crash_start *a, const struct crash_start *b) {
    return a->pid == b->pid && a->process_started == b->process_started &&
           a->pid_namespace == b->pid_namespace;
}

/* --- the verdict --- */

static bool executable_is_paused(const struct crash_record *record, uint64_t executable,
                                 int64_t now) {
    for (uint32_t i = 0; i < CRASH_PAUSES; i++)
        if (record->pauses[i].executable == executable &&
            happened_within(record->pauses[i].since_nano, now, CRASH_PAUSE_S))
            return true;
    return false;
}

/* Returns the entry at which the search begins, a different one for each of several concurrent
 * starts. */
static uint32_t first_of(const struct crash_start *own) {
    return (uint32_t)(own->pid % CRASH_STARTS);
}

enum crash_verdict crash_record_judge(const struct crash_record *record,
                                      const struct crash_start *own,
                                      bool (*is_gone)(const struct crash_start *start,
                                                      const struct crash_start *own)) {
    uint32_t probes = 0;
    uint32_t failures = 0;
    if (executable_is_paused(record, own->executable, own->began_nano))
        return CRASH_LEFT_ALONE;
    for (uint32_t i = 0; i < CRASH_STARTS && probes < CRASH_MOST_PROBES; i++) {
        const struct crash_start *const start = &record->starts[(first_of(own) + i) % CRASH_STARTS];
        if (start->executable != own->executable || !start_counts(start, own->began_nano) ||
            is_same_process(start, own))
            continue;
        probes++;
        if (is_gone(start, own) && ++failures == CRASH_MOST_FAILURES)
            return CRASH_FAILS;
    }
    return CRASH_ADMITTED;
}

/* --- choosing an entry --- */

uint32_t crash_record_place(const struct crash_record *record, const struct crash_start *own) {
    uint32_t oldest = first_of(own);
    uint32_t free_place = CRASH_STARTS;
    for (uint32_t i = 0; i < CRASH_STARTS; i++) {
        const uint32_t place = (first_of(own) + i) % CRASH_STARTS;
        const struct crash_start *const start = &record->starts[place];
        if (!start_counts(start, own->began_nano))
            free_place = free_place == CRASH_STARTS ? place : free_place;
        else if (is_same_process(start, own))
            return place;
        else if (start->began_nano < record->starts[oldest].began_nano)
            oldest = place;
    }
    return free_place < CRASH_STARTS ? free_place : oldest;
}

uint32_t crash_record_pause_place(const struct crash_record *record, uint64_t executable,
                                  int64_t now) {
    uint32_t oldest = 0;
    for (uint32_t i = 0; i < CRASH_PAUSES; i++) {
        const struct crash_pause *const pause = &record->pauses[i];
        if (pause->executable == executable ||
            !happened_within(pause->since_nano, now, CRASH_PAUSE_S))
            return i;
        if (pause->since_nano < record->pauses[oldest].since_nano)
            oldest = i;
    }
    return oldest;
}
