#include "served_descriptors.h"

#include "capture/kernel/futex.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

void served_clear(struct served_descriptors *served) {
    memset(served, 0, sizeof *served);
}

static struct served_descriptor *served_find(struct served_descriptors *served, int descriptor) {
    for (uint32_t i = 0; i < served->count; i++)
        if (served->all[i].descriptor == descriptor)
            return &served->all[i];
    return NULL;
}

bool served_add(struct served_descriptors *served, const struct served_descriptor *added) {
    if (served->count == SERVED_MOST || served_find(served, added->descriptor))
        return false;
    served->all[served->count++] = *added;
    served->round_ms = 0;
    return true;
}

/* Removes a descriptor. Drops its ready state, too, because the descriptor's number may be reused
 * at once. */
void served_remove(struct served_descriptors *served, int descriptor) {
    struct served_descriptor *const found = served_find(served, descriptor);
    if (found)
        *found = served->all[--served->count];
    for (uint32_t i = 0; i < SERVED_MOST; i++)
        if (served->ready[i].fd == descriptor)
            served->ready[i].revents = 0;
}

uint64_t served_next_poll(struct served_descriptors *served) {
    if (served->count == 0)
        return UINT64_MAX;
    if (served->round_ms == 0)
        served->round_ms = SERVED_FIRST_ROUND_MS;
    else if (served->round_ms < SERVED_LAST_ROUND_MS / 2)
        served->round_ms *= 2;
    else
        served->round_ms = SERVED_LAST_ROUND_MS;
    return in_milliseconds(served->round_ms);
}

/* Polls the descriptors. Uses ppoll with a timeout of 0, because every architecture has it. */
bool served_poll(struct served_descriptors *served) {
    static const struct timespec at_once = {0, 0};
    const int saved = errno;
    served->ready_count = 0;
    if (served->count == 0)
        return false;
    for (uint32_t i = 0; i < served->count; i++)
        served->ready[i] = (struct pollfd){.fd = served->all[i].descriptor, //
                                           .events = served->all[i].events};
    if (syscall(SYS_ppoll, served->ready, (unsigned long)served->count, &at_once, NULL, 0) > 0) {
        served->ready_count = served->count;
        served->round_ms = 0;
    }
    errno = saved;
    return served->ready_count > 0;
}

static void serve_one(struct served_descriptors *served, const struct pollfd *ready) {
    const struct served_descriptor *const found = served_find(served, ready->fd);
    const bool is_open = !(ready->revents & POLLNVAL);
    if (!found || !ready->revents)
        return;
    found->serve(found->arg, ready->fd, (unsigned)ready->revents);
    if (!is_open)
        served_remove(served, ready->fd);
}

void served_serve(struct served_descriptors *served) {
    const uint32_t count = served->ready_count;
    served->ready_count = 0;
    for (uint32_t i = 0; i < count; i++)
        serve_one(served, &served->ready[i]);
}
