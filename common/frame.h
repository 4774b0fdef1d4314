/* A frame of a stack: one word, whose top byte says what it is.
 *
 * A native frame is its address, as it is: no address of user space has anything in its top byte
 * (57 bits at most on x86-64, 52 on aarch64, where no tag is in a program counter), and the
 * kernel's half, with the vsyscall page, has its highest bit set. So native stacks are recorded,
 * hashed, compared and kept as they always were; only who names frames looks at the byte. Frames
 * that have no address of their own (an interpreter's, a JIT's whose code is gone) have one of the
 * bytes from 1 to 127, one for each source of such frames, and seven bytes of the source's own: the
 * number under which it has interned the function, and a position in that. So a walker in a signal
 * handler interns functions only, and the helper finds the line. capture_api.name_frame() tells
 * what such a frame stands for. An address out of a broken stack may look like such a frame: a
 * frame that nobody can name is taken for an address.
 */
#ifndef OTELPROF_FRAME_H
#define OTELPROF_FRAME_H

#include <stdbool.h>
#include <stdint.h>

enum { FRAME_SOURCE_SHIFT = 56, FRAME_POSITION_SHIFT = 32, FRAME_LAST_SOURCE = 127 };

/* What an interned frame stands for. The strings are the answerer's; "" = not known. */
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

#endif
