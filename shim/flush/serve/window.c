#include "window.h"

#include "profile_kind.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

struct window *window_open(struct http_request *request, enum window_form form, uint64_t length) {
    struct window *const window = calloc(1, sizeof *window);
    if (!window)
        return NULL;
    window->request = request;
    window->form = form;
    window->length = length;
    window->state = length ? WINDOW_BEGINS : WINDOW_NEXT;
    return window;
}

void window_close(struct window *window) {
    pprof_sum_close(window->sum);
    wire_free(&window->exports);
    free(window);
}

void window_take(struct window *window, const struct otlp_writer *writer, bool first) {
    if (!window->sum || window->state == WINDOW_DONE)
        return;
    if (first)
        pprof_sum_next_export(window->sum);
    pprof_sum_add(window->sum, writer);
}

void window_take_bytes(struct window *window, const uint8_t *request, size_t size) {
    const uint32_t length = htonl((uint32_t)size);
    struct wire *const to = &window->exports;
    const bool takes = window->state == WINDOW_NEXT || window->state == WINDOW_TAKES;
    if (window->form != WINDOW_OTLP || !takes)
        return;
    to->failed |= to->size + size > WINDOW_MOST_BYTES;
    if (!wire_reserve(to, sizeof length + size))
        return;
    wire_raw(to, &length, sizeof length);
    wire_raw(to, request, size);
}

/* Returns the longest time, in ns, for which a kind of the window's profile was sampled. */
static uint64_t longest_sampled(const struct window *window, const uint64_t nano[SAMPLE_KINDS]) {
    uint64_t longest = 0;
    for (unsigned kind = 0; kind < SAMPLE_KINDS; kind++)
        if ((profile_kinds[kind].profile & pprof_facts(window->kind)->profiles) &&
            nano[kind] > longest)
            longest = nano[kind];
    return longest;
}

void window_end_export(struct window *window, uint64_t now, uint64_t now_unix,
                       const uint64_t sampled_nano[static SAMPLE_KINDS]) {
    if (window->state == WINDOW_TAKES)
        window->sampled_nano += longest_sampled(window, sampled_nano);
    if (window->state == WINDOW_BEGINS) {
        if (window->sum)
            pprof_sum_begin(window->sum);
        window->state = WINDOW_TAKES;
        window->begin = now;
        window->begin_unix = now_unix;
    } else if (window->state == WINDOW_NEXT || now >= window->begin + window->length) {
        window->state = WINDOW_DONE;
        window->end_unix = now_unix;
    }
}

uint64_t window_duration(const struct window *window) {
    return window->sampled_nano ? window->sampled_nano : 1;
}

void window_cut(struct window *window, uint64_t end_unix) {
    if (window->state != WINDOW_TAKES || end_unix <= window->begin_unix)
        return;
    window->state = WINDOW_DONE;
    window->end_unix = end_unix;
}

void window_refuse(struct window *window) {
    window->state = WINDOW_DONE;
    window->refused = true;
    pprof_sum_close(window->sum);
    window->sum = NULL;
    wire_free(&window->exports);
}

size_t window_bytes(const struct window *window) {
    return window->exports.capacity + (window->sum ? pprof_sum_bytes(window->sum) : 0);
}

uint64_t windows_most_bytes(uint64_t held, uint64_t sums, uint64_t room) {
    enum { PART = 4, SMALL_PART = 8, SMALL_BYTES = 4 << 20 };
    if (room == UINT64_MAX)
        return WINDOW_MOST_BYTES;
    const uint64_t all = (held + sums + room) / PART;
    const uint64_t most = all > sums ? all - sums : 0;
    /* sums stay as large as they are: beside large ones a small window is still taken */
    const uint64_t small = room / SMALL_PART < SMALL_BYTES ? room / SMALL_PART : SMALL_BYTES;
    const uint64_t allowed = most > small ? most : small;
    return allowed < WINDOW_MOST_BYTES ? allowed : WINDOW_MOST_BYTES;
}

uint64_t window_wants(const struct window *window) {
    if (window->state == WINDOW_DONE)
        return UINT64_MAX;
    return window->state == WINDOW_TAKES ? window->begin + window->length : 0;
}
