#include "idle_waits.h"

#include "clock.h"
#include "hash.h"

#include <stddef.h>

static const uint64_t longest_sum = UINT64_C(60) * NANO_PER_SECOND;
enum { IDLE_PERCENT = 95 };

static bool is_idle_kind(enum wait_kind kind) {
    static const bool idle_kinds[WAIT_KINDS] = {
#define WAIT_KIND(constant, word, idle, meaning) [constant] = (idle),
#include "wait_kinds.def"
    };
    return idle_kinds[kind];
}

static uint64_t wait_key(enum wait_kind kind, uint64_t stack) {
    return hash_word(stack, kind);
}

static int wait_index(const struct idle_waits *idle, uint64_t place) {
    for (int i = 0; i < 2; i++)
        if (idle->waits[i].place == place && idle->waits[i].nano)
            return i;
    return -1;
}

static void forget_half(struct idle_waits *idle, uint64_t now) {
    while (now > idle->since_ns && now - idle->since_ns > longest_sum) {
        idle->since_ns += (now - idle->since_ns) / 2;
        for (int i = 0; i < 2; i++)
            idle->waits[i].nano /= 2;
    }
}

bool idle_waits_is(const struct idle_waits *idle, enum wait_kind kind, uint64_t stack,
                   uint64_t now) {
    const int i = wait_index(idle, wait_key(kind, stack));
    return i >= 0 && is_idle_kind(kind) && now > idle->since_ns &&
           idle->waits[i].nano > (now - idle->since_ns) / 100 * IDLE_PERCENT;
}

bool idle_waits_add(struct idle_waits *idle, enum wait_kind kind, uint64_t stack, uint64_t nano,
                    uint64_t thread_start_ns, uint64_t now) {
    const uint64_t place = wait_key(kind, stack);
    int i = wait_index(idle, place);
    if (!idle->since_ns)
        idle->since_ns = thread_start_ns;
    if (i < 0) { /* replaces the shorter of the two kept waits */
        i = idle->waits[0].nano > idle->waits[1].nano;
        idle->waits[i].place = place;
        idle->waits[i].nano = 0;
    }
    idle->waits[i].nano += nano;
    forget_half(idle, now);
    return idle_waits_is(idle, kind, stack, now);
}
