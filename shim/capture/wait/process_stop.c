#include "process_stop.h"

#include "bare_syscall.h"
#include "clock.h"

/* Ignores a shorter delay, which is no stop: a busy machine delivers a wake so late, beside the
 * delay that the kernel reports. */
static const uint64_t SHORTEST_STOP_NANO = 100 * NANO_PER_MILLI;

/* Reads the helper's run-queue delay. Returns false if it is not known: then a late return proves
 * no stop, because the helper may have waited for a processor. */
static bool read_own_delay(struct process_stop *stop, struct kernel_view *view,
                           uint64_t *delay_ns) {
    return kernel_thread_delay(view, (uint32_t)view->helper, &stop->files, delay_ns);
}

void process_stop_before_sleep(struct process_stop *stop, struct kernel_view *view) {
    stop->sleep_ns = 0;
    /* ignores the files of an earlier helper, which had other descriptors */
    if (view->helper == bare_syscall(SYS_gettid, 0, 0, 0, 0, 0, 0) &&
        read_own_delay(stop, view, &stop->delay_ns))
        stop->sleep_ns = monotonic_nano();
}

uint64_t process_stop_after_sleep(struct process_stop *stop, struct kernel_view *view,
                                  uint64_t until) {
    const uint64_t begun = stop->sleep_ns;
    const uint64_t due = until > begun ? until : begun;
    uint64_t delay_ns;
    stop->sleep_ns = 0;
    if (!begun || until == UINT64_MAX)
        return 0;
    const uint64_t now = monotonic_nano();
    if (now <= due || now - due < SHORTEST_STOP_NANO || !read_own_delay(stop, view, &delay_ns))
        return 0;
    const uint64_t delayed = delay_ns > stop->delay_ns ? delay_ns - stop->delay_ns : 0;
    const uint64_t late = now - due;
    return late > delayed && late - delayed >= SHORTEST_STOP_NANO ? late - delayed : 0;
}
