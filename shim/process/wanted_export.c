#include "wanted_export.h"

#include "capture/kernel/futex.h"
#include "clock.h"
#include "helper.h"

#include <stdatomic.h>

enum { MADE_ROUND_MS = 100 };

static struct {
    _Atomic uint32_t wanted;  /* number of the last request of the program; wraps */
    _Atomic uint32_t noticed; /* number of the last request that the helper has noticed */
    _Atomic uint32_t made;    /* number of the last request that is done; a futex */
    _Atomic uint64_t delivered;
    _Atomic uint64_t failed;
} exports;

static bool helper_is_running_here(void) {
    return helper_is_of_this_process() && helper_state_is_running(atomic_load(&helper.state));
}

static bool has_reached(_Atomic uint32_t *counter, uint32_t number) {
    return (int32_t)(atomic_load(counter) - number) >= 0;
}

static bool is_made_by(uint32_t number, uint64_t deadline) {
    uint64_t now;
    while (!has_reached(&exports.made, number) && helper_is_running_here() &&
           (now = monotonic_nano()) < deadline) {
        const uint64_t round = now + MADE_ROUND_MS * NANO_PER_MILLI;
        const uint32_t made = atomic_load(&exports.made);
        if (!has_reached(&exports.made, number))
            futex_wait(&exports.made, made, round < deadline ? round : deadline);
    }
    return has_reached(&exports.made, number);
}

bool wanted_export_request(uint64_t timeout_ms) {
    if (!helper_is_running_here())
        return false;
    const uint64_t deadline = in_milliseconds(timeout_ms);
    const uint64_t failed = atomic_load(&exports.failed);
    const uint32_t number = atomic_fetch_add(&exports.wanted, 1) + 1;
    helper_wake();
    return is_made_by(number, deadline) && atomic_load(&exports.failed) == failed;
}

uint64_t wanted_export_delivered(void) {
    return atomic_load(&exports.delivered);
}

uint64_t wanted_export_failed(void) {
    return atomic_load(&exports.failed);
}

bool wanted_export_is_asked(void) {
    return atomic_load(&exports.wanted) != atomic_load(&exports.noticed);
}

uint32_t wanted_export_notice(void) {
    const uint32_t wanted = atomic_load(&exports.wanted);
    atomic_store(&exports.noticed, wanted);
    return wanted;
}

void wanted_export_is_made(uint32_t number) {
    atomic_store(&exports.made, number);
    futex_wake(&exports.made);
}

void wanted_export_count(bool delivered) {
    atomic_fetch_add(delivered ? &exports.delivered : &exports.failed, 1);
}

void wanted_export_after_fork(void) {
    atomic_store(&exports.wanted, 0);
    atomic_store(&exports.noticed, 0);
    atomic_store(&exports.made, 0);
    atomic_store(&exports.delivered, 0);
    atomic_store(&exports.failed, 0);
}
