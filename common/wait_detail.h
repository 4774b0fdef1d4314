/* Describes the object that a thread waits for, and its holder: a part of the identity of wait,
 * lock and thread samples.
 *
 * Like a context, the detail is bounded, and is stored and compared as words: the first
 * `wait_words()`.
 */
#ifndef OTELPROF_WAIT_DETAIL_H
#define OTELPROF_WAIT_DETAIL_H

#include <stddef.h>
#include <stdint.h>

enum wait_kind {
    WAIT_NONE,
#define WAIT_KIND(constant, word, idle, meaning) constant,
#include "wait_kinds.def"
    WAIT_KINDS
};

/* Lists the conditions that a thread can be in, in a profile of all threads. */
enum thread_condition {
    CONDITION_UNKNOWN,
    CONDITION_RUNNING, /* the thread is on a processor, or ready for one */
    CONDITION_BLOCKED,
};

enum { WAIT_HOLDER_FRAMES = 16, WAIT_WORDS = 4 + WAIT_HOLDER_FRAMES };

struct wait_detail {
    uint8_t kind;      /* enum wait_kind */
    uint8_t condition; /* enum thread_condition, for SAMPLE_THREAD */
    uint16_t holder_frame_count;
    uint32_t holder;          /* thread id of the lock's holder; 0: not known */
    uint64_t object;          /* address of the lock or futex; 0: none */
    uint64_t waited_nano;     /* time of the wait so far, for SAMPLE_THREAD */
    uint64_t holder_interval; /* interval of holder_frames: see harvest_sample.interval */
    /* stack in which the holder was last seen, leaf first */
    uint64_t holder_frames[WAIT_HOLDER_FRAMES];
};
_Static_assert(sizeof(struct wait_detail) == WAIT_WORDS * 8, "compared as words");

/* Returns how many words of the detail are in use. Context: any. Async-signal-safe: yes. */
static inline uint32_t wait_words(const struct wait_detail *detail) {
    return (uint32_t)offsetof(struct wait_detail, holder_frames) / 8 + detail->holder_frame_count;
}

/* Returns the word of a kind, for example "lock"; "" for WAIT_NONE. Context: any. */
const char *wait_kind_word(enum wait_kind kind);

#endif
