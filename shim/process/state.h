/* Keeps the state of the profiler's life in a process: one word, and the table of its permitted
 * moves. The helper thread has a word and a table of its own.
 *
 * state.def lists the states; docs/internals/life.md shows them. Each move is permitted in some
 * contexts, and refused in the others. The word belongs to one process: a child of vfork() sees the
 * word, too, but makes no move. A child that has a copy of the memory takes the word over by a move
 * of the context IN_COPY.
 *
 * Atomics of process/ have the default order, sequentially consistent, unless a comment names
 * another order and its partner: none of them is on a path whose cost matters.
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

/* Says in which context a move is made; it limits the work that may follow the move. */
enum state_context {
    IN_CALM = 1,   /* on a thread of the application that may wait, allocate and create threads */
    IN_SIGNAL = 2, /* as IN_CALM, but the thread may be in a signal handler */
    IN_HELPER = 4, /* on the helper thread */
    IN_COPY = 8,   /* in a forked child or a bare clone, which has its own copy of the memory */
};

struct state_word {
    _Atomic uint32_t now; /* enum state */
    pid_t owner;          /* the process that the word describes; 0: not known yet */
};

/* Holds the state of this process. */
extern struct state_word process_state;

/* Returns true if the table has this move in this context. */
bool state_permits(enum state from, enum state to, enum state_context context);

static inline enum state state_now(const struct state_word *word) {
    return (enum state)atomic_load(&word->now);
}

/* Returns true if the word describes the calling process. Makes a system call. */
bool state_is_own(const struct state_word *word);

/* Moves to `to`. Returns false if the table has no such move from the present state, or if the word
 * belongs to another process. Of two threads that make the same move one succeeds. Makes no system
 * call if the table refuses, and none IN_HELPER. IN_COPY: the calling process becomes the owner. */
bool state_move(struct state_word *word, enum state to, enum state_context context);

/* --- common checks --- */

/* Returns true if capture was armed, in this process or in the process that it was copied from. */
static inline bool state_has_begun(const struct state_word *word) {
    const enum state now = state_now(word);
    return now != STATE_STARTING && now != STATE_OFF;
}

/* Returns true if threads are sampled, and the end has not begun. */
static inline bool state_is_in_service(const struct state_word *word) {
    const enum state now = state_now(word);
    return now == STATE_ARMED || now == STATE_CHILD;
}

/* Returns true if the last export has been made, or is about to be. */
static inline bool state_is_ending(const struct state_word *word) {
    const enum state now = state_now(word);
    return now == STATE_ENDING || now == STATE_ENDED;
}

/* Returns true if no helper will be started any more; a running helper makes the last export. */
static inline bool state_is_past_helpers(const struct state_word *word) {
    const enum state now = state_now(word);
    return now == STATE_ENDED || now == STATE_LEFT;
}

/* --- the helper's --- */

/* Lists the states of the helper. A forked child begins at NONE. */
enum helper_state {
#define HELPER_STATE(name, does) HELPER_##name,
#include "state.def"
    HELPER_STATE_COUNT
};

bool helper_state_permits(enum helper_state from, enum helper_state to, enum state_context context);

/* Returns true if the helper's thread exists and has not ended, or is about to be created. */
static inline bool helper_state_is_running(uint32_t state) {
    return state >= HELPER_STARTS && state <= HELPER_LEAVES;
}

/* Moves `state` to `to`. Returns false if the table does not permit that move from the present
 * state. Wakes no thread. */
bool helper_state_move(_Atomic uint32_t *state, enum helper_state to, enum state_context context);

/* Moves as helper_state_move() does, but only from the state `from`. */
bool helper_state_move_from(_Atomic uint32_t *state, enum helper_state from, enum helper_state to,
                            enum state_context context);

#endif
