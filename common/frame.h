/* A frame of a stack is one word; its top byte is its kind.
 *
 * A native frame is its plain address: no address of user space uses the top byte (57 bits at most
 * on x86-64, 52 on aarch64, where a program counter holds no tag), and the kernel's half, with the
 * vsyscall page, has its highest bit set. So native stacks are recorded, hashed, compared and kept
 * as plain addresses; only code that names frames checks the byte. Frames that have no address of
 * their own (an interpreter's, or a JIT's whose code is gone) have a byte from 1 to 127, one for
 * each source of such frames, and seven bytes that the source defines: the number under which it
 * has interned the function, and a position in that. So a walker in a signal handler interns
 * functions only, and the helper finds the line. capture_api.harvest.name_frame() names such a
 * frame. An address out of a broken stack may resemble such a frame, so a frame that cannot be
 * named counts as an address.
 */
#ifndef OTELPROF_FRAME_H
#define OTELPROF_FRAME_H

#include <stdbool.h>
#include <stdint.h>

enum { FRAME_SOURCE_SHIFT = 56, FRAME_POSITION_SHIFT = 32, FRAME_LAST_SOURCE = 127 };

/* Sources. CPYTHON: the function is one of python_functions.h, the position an offset in code
 * units. */
enum { FRAME_CPYTHON = 1 };

/* Marks a place, and is no frame: the interpreter's frames up to the next such word belong at the
 * native frame whose place on the stack this is. Only stacks that flush has to finish have such
 * words; flush merges the frames there. */
enum { FRAME_PLACE = FRAME_LAST_SOURCE };

/* The name of an interned frame. The callee owns the strings; "" = not known. */
struct named_frame {
    const char *type; /* of OpenTelemetry's profile.frame.type, such as "cpython" */
    const char *function;
    const char *file;
    int line;       /* 0 = not known */
    int start_line; /* of the function */
};

/* Context: any. Async-signal-safe: yes. */
static inline bool frame_is_address(uint64_t frame) {
    return (frame >> FRAME_SOURCE_SHIFT) - 1 >= FRAME_LAST_SOURCE;
}

/* `source`: 1 to 127. `position` within the function: 24 bits. */
static inline uint64_t frame_interned(uint8_t source, uint32_t position, uint32_t function) {
    return (uint64_t)source << FRAME_SOURCE_SHIFT |
           (uint64_t)(position & 0xffffff) << FRAME_POSITION_SHIFT | function;
}

/* These two take an interned frame. */
static inline uint32_t frame_position(uint64_t frame) {
    return (uint32_t)(frame >> FRAME_POSITION_SHIFT) & 0xffffff;
}
static inline uint32_t frame_function(uint64_t frame) {
    return (uint32_t)frame;
}

/* Context: any. Async-signal-safe: yes. */
static inline uint64_t frame_place(uintptr_t at) {
    return (uint64_t)FRAME_PLACE << FRAME_SOURCE_SHIFT | at;
}

static inline bool frame_is_place(uint64_t frame) {
    return frame >> FRAME_SOURCE_SHIFT == FRAME_PLACE;
}

static inline uint64_t frame_place_at(uint64_t frame) {
    return frame & ((UINT64_C(1) << FRAME_SOURCE_SHIFT) - 1);
}

/* Removes the places. Returns the number of frames; `to` may be `frames`. */
static inline uint32_t frames_without_places(const uint64_t *frames, uint32_t count, uint64_t *to) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < count; i++)
        if (!frame_is_place(frames[i]))
            to[kept++] = frames[i];
    return kept;
}

#endif
