/* The state of the profiler's life in a process: one word, and the table of its permitted moves.
 * The helper thread has a word and a table of its own.
 *
 * The list is state.def; docs/internals/life.md shows it. Each move is made in one or more
 * contexts, and refused in the others. The word belongs to one process: a child of vfork() sees it
 * too, and makes no move. A child that has a copy of the memory takes the word over by a move of
 * the context IN_COPY.
 *
 * Context: any. Async-signal-safe: yes.
 */
#ifndef OTELPROF_STATE_H
#define OTELPROF_STATE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum state {
#define STATE(name, happens, hooks) STATE_##name,
#include "state.def"
    STATE_COUNT
};

/* Where a move is made, and so what may follow it. */
enum state_context {
    IN_CALM = 1,   /* on a thread of the application that may wait, allocate and create threads */
    IN_SIGNAL = 2, /* the same, but perhaps in a signal handler */
    IN_HELPER = 4, /* on the helper thread */
    IN_COPY = 8,   /* in a forked child or a bare clone, which has the memory to itself */
};

struct state_word {
    _Atomic uint32_t now; /* enum state */
    pid_t owner;          /* the process that it is about; 0: not known yet */
};

/* The word of this process. */
extern struct state_word process_state;

/* Whether the table has this move in this context. */
bool state_permits(enum state from, enum state to, enum state_context context);

static inline enum state state_now(const struct state_word *word) {
    return (enum state)atomic_load(&word->now);
}

/* Whether the calling process is the one that the word is about. A system call. */
bool state_is_own(const struct state_word *word);

/* Moves to `to`. false: the table has no such move from here, or the word is another process's.
 * Of two threads that make the same move one succeeds. No system call where the table refuses, and
 * none IN_HELPER. IN_COPY: the calling process is the owner afterwards. */
bool state_move(struct state_word *word, enum state to, enum state_context context);

/* --- what several readers ask --- */

/* Capture was armed, in this process or in the one that it was copied from. */
static inline bool state_has_begun(const struct state_word *word) {
    const enum state now = state_now(word);
    return now != STATE_STARTING && now != STATE_OFF;
}

/* Threads are sampled, and nothing of the end has begun. */
static inline bool state_is_in_service(const struct state_word *word) {
    const enum state now = state_now(word);
    return now == STATE_ARMED || now == STATE_CHILD;
}

/* The last export is about to be made, or has been. */
static inline bool state_is_ending(const struct state_word *word) {
    const enum state now = state_now(word);
    return now == STATE_ENDING || now == STATE_ENDED;
}

/* A helper that is not there will not be made, and one that is there makes the last export. */
static inline bool state_is_past_helpers(const struct state_word *word) {
    const enum state now = state_now(word);
    return now == STATE_ENDED || now == STATE_LEFT;
}

/* --- the helper's --- */

/* A forked child begins at NONE. */
enum helper_state {
#define HELPER_STATE(name, does) HELPER_##name,
#include "state.def"
    HELPER_STATE_COUNT
};

bool helper_state_permits(enum helper_state from, enum helper_state to, enum state_context context);

/* There is a thread, or there is about to be one, that has not come to its end. */
static inline bool helper_state_is_running(uint32_t state) {
    return state >= HELPER_STARTS && state <= HELPER_LEAVES;
}

/* Moves `state` to `to`, from wherever the table lets it. false: it does not from here. Wakes
 * nobody. */
bool helper_state_move(_Atomic uint32_t *state, enum helper_state to, enum state_context context);

/* The same from `from` alone. */
bool helper_state_move_from(_Atomic uint32_t *state, enum helper_state from, enum helper_state to,
                            enum state_context context);

#endif
