#include "refused_file.h"

#include "clock.h"

#include <errno.h>
#include <stdatomic.h>

static const uint64_t SHORTEST_PAUSE_NANO = 100 * NANO_PER_MILLI;
static const uint64_t LONGEST_PAUSE_NANO = 60 * NANO_PER_SECOND;

/* Counts the changes after which the kernel may decide otherwise. Relaxed: nothing else is
 * published, and an attempt that misses a change is repeated after the pause. */
static _Atomic uint32_t changes;

bool refused_file_pauses(const struct refused_file *refused, uint64_t now_ns) {
    return now_ns < refused->until_ns &&
           refused->changes == atomic_load_explicit(&changes, memory_order_relaxed);
}

void refused_file_note(struct refused_file *refused, long result, uint64_t now_ns) {
    const uint32_t seen = atomic_load_explicit(&changes, memory_order_relaxed);
    if (result != -EACCES && result != -EPERM) {
        if (result >= 0)
            *refused = (struct refused_file){0};
        return;
    }
    const uint64_t longer = refused->changes == seen ? 2 * refused->pause_ns : 0;
    refused->pause_ns = longer < SHORTEST_PAUSE_NANO  ? SHORTEST_PAUSE_NANO
                        : longer > LONGEST_PAUSE_NANO ? LONGEST_PAUSE_NANO
                                                      : longer;
    refused->until_ns = now_ns + refused->pause_ns;
    refused->changes = seen;
}

void refused_files_ask_again(void) {
    atomic_fetch_add_explicit(&changes, 1, memory_order_relaxed);
}
