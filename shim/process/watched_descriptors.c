#include "watched_descriptors.h"

#include "capture/kernel/futex.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

void watched_clear(struct watched_descriptors *watched) {
    memset(watched, 0, sizeof *watched);
}

static struct watched_descriptor *watched_find(struct watched_descriptors *watched,
                                               int descriptor) {
    for (uint32_t i = 0; i < watched->count; i++)
        if (watched->all[i].descriptor == descriptor)
            return &watched->all[i];
    return NULL;
}

bool watched_add(struct watched_descriptors *watched, const struct watched_descriptor *added) {
    if (watched->count == WATCHED_MOST || watched_find(watched, added->descriptor))
        return false;
    watched->all[watched->count++] = *added;
    watched->round_ms = 0;
    return true;
}

/* Removes a descriptor. Drops its ready state, too, because the descriptor's number may be reused
 * at once. */
void watched_remove(struct watched_descriptors *watched, int descriptor) {
    struct watched_descriptor *const found = watched_find(watched, descriptor);
    if (found)
        *found = watched->all[--watched->count];
    for (uint32_t i = 0; i < WATCHED_MOST; i++)
        if (watched->ready[i].fd == descriptor)
            watched->ready[i].revents = 0;
}

uint64_t watched_next_poll(struct watched_descriptors *watched) {
    if (watched->count == 0)
        return UINT64_MAX;
    if (watched->round_ms == 0)
        watched->round_ms = WATCHED_FIRST_ROUND_MS;
    else if (watched->round_ms < WATCHED_LAST_ROUND_MS / 2)
        watched->round_ms *= 2;
    else
        watched->round_ms = WATCHED_LAST_ROUND_MS;
    return in_milliseconds(watched->round_ms);
}

/* Polls the descriptors. Uses ppoll with a timeout of 0, because every architecture has it. */
bool watched_poll(struct watched_descriptors *watched) {
    static const struct timespec at_once = {0, 0};
    const int saved = errno;
    watched->ready_count = 0;
    if (watched->count == 0)
        return false;
    for (uint32_t i = 0; i < watched->count; i++)
        watched->ready[i] = (struct pollfd){.fd = watched->all[i].descriptor, //
                                            .events = watched->all[i].events};
    if (syscall(SYS_ppoll, watched->ready, (unsigned long)watched->count, &at_once, NULL, 0) > 0) {
        watched->ready_count = watched->count;
        watched->round_ms = 0;
    }
    errno = saved;
    return watched->ready_count > 0;
}

static void call_if_ready(struct watched_descriptors *watched, const struct pollfd *ready) {
    const struct watched_descriptor *const found = watched_find(watched, ready->fd);
    const bool is_open = !(ready->revents & POLLNVAL);
    if (!found || !ready->revents)
        return;
    found->on_ready(found->arg, ready->fd, (unsigned)ready->revents);
    if (!is_open)
        watched_remove(watched, ready->fd);
}

void watched_call_ready(struct watched_descriptors *watched) {
    const uint32_t count = watched->ready_count;
    watched->ready_count = 0;
    for (uint32_t i = 0; i < count; i++)
        call_if_ready(watched, &watched->ready[i]);
}
