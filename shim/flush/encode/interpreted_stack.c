#include "interpreted_stack.h"

#include <stdbool.h>

struct merging {
    const uint64_t *walked;
    uint32_t walked_count;
    uint32_t next_walked;
    const struct native_stack *native;
    uint32_t next_native;
    uint64_t *frames;
    uint32_t count;
    uint32_t max;
};

static void put_frame(struct merging *m, uint64_t frame) {
    if (m->count < m->max)
        m->frames[m->count++] = frame;
}

/* --- the walker's part --- */

/* Finds `frame` on the native stack, and advances behind it. After a run of interpreted frames,
 * which hides one or more native frames, the match may be one or more frames further. Returns false
 * if there is no match. */
static bool resync_with_native(struct merging *m, uint64_t frame, bool was_interpreted) {
    const struct native_stack *const native = m->native;
    uint32_t i = m->next_native + was_interpreted;
    while (was_interpreted && i < native->count && native->frames[i] != frame)
        i++;
    if (i >= native->count || native->frames[i] != frame)
        return false;
    m->next_native = i + 1;
    return true;
}

/* Keeps the walker's frames before the first place. Returns false if they do not agree with the
 * native stack, have no native frame, or end with an interpreted one. */
static bool keep_walked(struct merging *m) {
    bool was_interpreted = false;
    for (; m->next_walked < m->walked_count; m->next_walked++) {
        const uint64_t frame = m->walked[m->next_walked];
        if (frame_is_place(frame))
            break;
        const bool is_native = frame_is_address(frame);
        if (is_native && !resync_with_native(m, frame, was_interpreted))
            return false;
        was_interpreted = !is_native;
        put_frame(m, frame);
    }
    return m->next_native > 0 && !was_interpreted;
}

/* --- the native part --- */

static uint64_t next_place(const struct merging *m) {
    return m->next_walked < m->walked_count ? frame_place_at(m->walked[m->next_walked]) : 0;
}

/* Writes the frames of the next group. Returns their number. */
static uint32_t put_group(struct merging *m) {
    uint32_t count = 0;
    while (++m->next_walked < m->walked_count && !frame_is_place(m->walked[m->next_walked])) {
        put_frame(m, m->walked[m->next_walked]);
        count++;
    }
    return count;
}

/* Writes a native frame, or the groups that it runs. The extent of the outermost frame is unknown,
 * so groups above that frame are written after it. */
static void put_native(struct merging *m, uint32_t i) {
    const struct native_stack *const native = m->native;
    const uint64_t sp = native->stack_pointers[i];
    const uint64_t end = i + 1 < native->count ? native->stack_pointers[i + 1] : sp;
    bool runs_group = false;
    for (uint64_t place = next_place(m); place && place < end; place = next_place(m))
        runs_group |= put_group(m) != 0 && place >= sp;
    if (!runs_group)
        put_frame(m, native->frames[i]);
}

uint32_t interpreted_stack(const uint64_t *walked, uint32_t walked_count,
                           const struct native_stack *native, uint64_t *frames, uint32_t max) {
    struct merging m = {.walked = walked,
                        .walked_count = walked_count,
                        .native = native,
                        .frames = frames,
                        .max = max};
    if (!keep_walked(&m) || m.count == 0)
        return 0;
    m.count--; /* handles the walker's last frame, which may run a group, too */
    for (uint32_t i = m.next_native - 1; i < native->count; i++)
        put_native(&m, i);
    while (next_place(&m))
        put_group(&m);
    return m.count;
}
