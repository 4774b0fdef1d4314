#include "state.h"

#include "capture/kernel/first_page.h"

#include <unistd.h>

IN_FIRST_PAGE struct state_word process_state;

/* Lists the contexts in which each move is permitted. */
static const uint8_t moves[STATE_COUNT][STATE_COUNT] = {
#define MOVE(from, to, contexts, cause) [STATE_##from][STATE_##to] = (contexts),
#include "state.def"
};

bool state_permits(enum state from, enum state to, enum state_context context) {
    return moves[from][to] & context;
}

bool state_is_own(const struct state_word *word) {
    return word->owner == getpid();
}

/* Returns true if this process may move the word. Before there is an owner the process has one
 * thread, in the constructor of this or of another library. The helper is always in the owner's
 * process, so it makes no call of getpid(), which a filter may forbid. */
static bool may_move(const struct state_word *word, enum state_context context) {
    return context == IN_COPY || context == IN_HELPER || word->owner == 0 || state_is_own(word);
}

bool state_move(struct state_word *word, enum state to, enum state_context context) {
    uint32_t now = atomic_load(&word->now);
    do {
        if (!state_permits((enum state)now, to, context) || !may_move(word, context))
            return false;
    } while (!atomic_compare_exchange_weak(&word->now, &now, to));
    if (context == IN_COPY)
        word->owner = getpid();
    return true;
}

/* --- the helper's --- */

static const uint8_t helper_moves[HELPER_STATE_COUNT][HELPER_STATE_COUNT] = {
#define HELPER_MOVE(from, to, contexts, cause) [HELPER_##from][HELPER_##to] = (contexts),
#include "state.def"
};

bool helper_state_permits(enum helper_state from, enum helper_state to,
                          enum state_context context) {
    return helper_moves[from][to] & context;
}

bool helper_state_move(_Atomic uint32_t *state, enum helper_state to, enum state_context context) {
    uint32_t now = atomic_load(state);
    do {
        if (!helper_state_permits((enum helper_state)now, to, context))
            return false;
    } while (!atomic_compare_exchange_weak(state, &now, to));
    return true;
}

bool helper_state_move_from(_Atomic uint32_t *state, enum helper_state from, enum helper_state to,
                            enum state_context context) {
    uint32_t now = from;
    return helper_state_permits(from, to, context) &&
           atomic_compare_exchange_strong(state, &now, to);
}
