/* Defines a frame of a stack: one word. A top byte of 1 to 127 is the frame's source; with any
 * other top byte the frame is a plain address.
 */
#ifndef OTELPROF_FRAME_H
#define OTELPROF_FRAME_H

#include <stdbool.h>
#include <stdint.h>

enum { FRAME_SOURCE_SHIFT = 56, FRAME_POSITION_SHIFT = 32, FRAME_LAST_SOURCE = 127 };

/* Lists the sources. CPYTHON: the function is a number of python_functions.h, the position an
 * offset in code units. */
enum { FRAME_CPYTHON = 1 };

/* Marks a function of an ended child's interpreter: the function is an offset, the position the
 * number of a slot (child_samples.h). */
enum { FRAME_CHILD = 2 };

/* Marks a word that is no frame but a place on the native stack: the interpreter's frames that
 * follow it, up to the next such word, belong to the native frame at that place. Only stacks that
 * flush must finish have such words; flush then merges the frames. */
enum { FRAME_PLACE = FRAME_LAST_SOURCE };

/* Holds the name of an interned frame. The function that fills it in owns the strings; "": not
 * known. */
struct named_frame {
    const char *type; /* value of OpenTelemetry's profile.frame.type, such as "cpython" */
    const char *function;
    const char *file;
    int line;       /* 0: not known */
    int start_line; /* first line of the function */
};

/* Returns whether the frame is a plain address. Context: any. Async-signal-safe: yes. */
static inline bool frame_is_address(uint64_t frame) {
    return (frame >> FRAME_SOURCE_SHIFT) - 1 >= FRAME_LAST_SOURCE;
}

/* Makes an interned frame. `source`: 1 to 127. `position` within the function: 24 bits. */
static inline uint64_t frame_interned(uint8_t source, uint32_t position, uint32_t function) {
    return (uint64_t)source << FRAME_SOURCE_SHIFT |
           (uint64_t)(position & 0xffffff) << FRAME_POSITION_SHIFT | function;
}

/* Return the parts of an interned frame. */
static inline uint32_t frame_position(uint64_t frame) {
    return (uint32_t)(frame >> FRAME_POSITION_SHIFT) & 0xffffff;
}
static inline uint32_t frame_function(uint64_t frame) {
    return (uint32_t)frame;
}

/* Makes the word for a place on the native stack. Context: any. Async-signal-safe: yes. */
static inline uint64_t frame_place(uintptr_t at) {
    return (uint64_t)FRAME_PLACE << FRAME_SOURCE_SHIFT | at;
}

static inline bool frame_is_place(uint64_t frame) {
    return frame >> FRAME_SOURCE_SHIFT == FRAME_PLACE;
}

static inline uint64_t frame_place_at(uint64_t frame) {
    return frame & ((UINT64_C(1) << FRAME_SOURCE_SHIFT) - 1);
}

/* Copies the frames without the places. Returns the number of frames; `to` may be `frames`. */
static inline uint32_t frames_without_places(const uint64_t *frames, uint32_t count, uint64_t *to) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < count; i++)
        if (!frame_is_place(frames[i]))
            to[kept++] = frames[i];
    return kept;
}

#endif
