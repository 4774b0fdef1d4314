#include "end_turn.h"

#include "capture/kernel/futex.h"
#include "clock.h"
#include "main_watch.h"

#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Sets the width of an id: ids have 22 bits (Linux, PID_MAX_LIMIT). The rest of the word holds
 * milliseconds of 34 years. */
enum { ID_BITS = 24 };
enum { ROUND_MS = 10 }; /* time between two checks that the thread still exists */
#define ID_MASK ((1u << ID_BITS) - 1)

static bool end_turn_is_own(uint64_t taken) {
    return (taken & ID_MASK) == (uint32_t)syscall(SYS_gettid);
}

bool end_turn_take(struct end_turn *turn, uint64_t timeout_ms) {
    const uint64_t until_ms = in_milliseconds(timeout_ms) / NANO_PER_MILLI;
    uint64_t none = 0;
    return atomic_compare_exchange_strong(&turn->taken, &none,
                                          until_ms << ID_BITS | (uint32_t)syscall(SYS_gettid));
}

void end_turn_enter(struct end_turn *turn, enum end_turn_stage stage) {
    atomic_store(&turn->stage, stage);
    futex_wake(&turn->stage);
}

bool end_turn_hold(struct end_turn *turn, int number) {
    const uint64_t taken = atomic_load(&turn->taken);
    if (!taken || atomic_load(&turn->stage) != END_TURN_EXPORTS || !end_turn_is_own(taken))
        return false;
    atomic_store(&turn->held, number);
    return true;
}

void end_turn_raise(struct end_turn *turn) {
    const int number = atomic_exchange(&turn->held, 0);
    if (number)
        syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), number);
}

/* Returns true if the thread has ended. The kernel keeps the id of an ended main thread until the
 * process has ended, so a main thread is checked by /proc. */
static bool has_ended(uint32_t id) {
    const int saved = errno;
    const pid_t process = getpid();
    const bool ended = id == (uint32_t)process
                           ? main_watch_main_has_ended()
                           : syscall(SYS_tgkill, process, id, 0) != 0 && errno == ESRCH;
    errno = saved;
    return ended;
}

/* Waits in rounds, each of which ends by a change of stage, by its timeout, or by a signal, even a
 * signal with a handler of the program's. */
void end_turn_wait(struct end_turn *turn) {
    const uint64_t taken = atomic_load(&turn->taken);
    const uint64_t until = (taken >> ID_BITS) * NANO_PER_MILLI;
    uint32_t stage = atomic_load(&turn->stage);
    if (!taken || monotonic_nano() >= until || end_turn_is_own(taken))
        return;
    while (stage != END_TURN_LEFT && monotonic_nano() < until && !has_ended(taken & ID_MASK)) {
        const uint64_t round = in_milliseconds(ROUND_MS);
        futex_wait(&turn->stage, stage, round < until ? round : until);
        stage = atomic_load(&turn->stage);
    }
}

void end_turn_after_fork(struct end_turn *turn) {
    atomic_store(&turn->taken, 0);
    atomic_store(&turn->stage, END_TURN_EXPORTS);
    atomic_store(&turn->held, 0);
}
