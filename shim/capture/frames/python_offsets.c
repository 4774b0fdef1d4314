#include "python_offsets.h"

#include <string.h>

enum { MINOR_SHIFT = 16, MINOR_3_11 = 0x030b, MINOR_3_12 = 0x030c, MINOR_3_13 = 0x030d };

static const struct python_offsets of_3_11 = {
    .interpreters_head = 40,
    .interpreter_next = 0,
    .threads_head = 16,
    .lock_holder = 576, /* gilstate.tstate_current */
    .thread_next = 8,
    .thread_id = 152,
    .native_thread_id = 160,
    .frames_chunk = 296,
    .cframe = 56,
    .cframe_frame = 8,
    .cframe_previous = 16,
    .code = 32,
    .previous = 48,
    .instruction = 56,
    .owner = 69,
    .is_entry = 68,
    .type = 8,
    .var_size = 16,
    .code_filename = 112,
    .code_name = 120,
    .code_qualname = 128,
    .code_linetable = 136,
    .code_first_line = 72,
    .code_units = 184,
    .bytes_data = 32,
    .string_length = 16,
    .string_state = 32,
    .string_ascii = 48,
    .string_wide = 72,
};

static const struct python_offsets of_3_12 = {
    .interpreters_head = 40,
    .interpreter_next = 0,
    .threads_head = 72,
    .thread_next = 8,
    .thread_id = 136,
    .native_thread_id = 144,
    .frames_chunk = 232,
    .cframe = 56,
    .cframe_frame = 0,
    .cframe_previous = 8,
    .code = 0,
    .previous = 8,
    .instruction = 56,
    .owner = 70,
    .first_entry_owner = 3, /* FRAME_OWNED_BY_CSTACK */
    .type = 8,
    .var_size = 16,
    .code_filename = 112,
    .code_name = 120,
    .code_qualname = 128,
    .code_linetable = 136,
    .code_first_line = 68,
    .code_units = 192,
    .bytes_data = 32,
    .string_length = 16,
    .string_state = 32,
    .string_ascii = 40,
    .string_wide = 56,
};

/* Lists the fields whose offsets the interpreter publishes, and the place of each in the tables
 * (_Py_DebugOffsets) of 3.13, 3.14 and 3.15 (pycore_runtime.h of 3.13, pycore_debug_offsets.h of
 * the others; each word has 64 bits). */
#define OFFSETS_PUBLISHED                                                                          \
    AT(interpreters_head, 40, 40, 40)                                                              \
    AT(interpreter_next, 64, 64, 64)                                                               \
    AT(threads_head, 72, 72, 72)                                                                   \
    AT(thread_next, 168, 192, 192)                                                                 \
    AT(current_frame, 184, 208, 208)                                                               \
    AT(thread_id, 192, 216, 240)                                                                   \
    AT(native_thread_id, 200, 224, 248)                                                            \
    AT(previous, 232, 256, 320)                                                                    \
    AT(code, 240, 264, 328)                                                                        \
    AT(instruction, 248, 272, 336)                                                                 \
    AT(owner, 264, 288, 352)                                                                       \
    AT(code_filename, 280, 320, 384)                                                               \
    AT(code_name, 288, 328, 392)                                                                   \
    AT(code_qualname, 296, 336, 400)                                                               \
    AT(code_linetable, 304, 344, 408)                                                              \
    AT(code_first_line, 312, 352, 416)                                                             \
    AT(code_units, 344, 384, 448)                                                                  \
    AT(type, 360, 408, 472)                                                                        \
    AT(var_size, 520, 600, 696)                                                                    \
    AT(bytes_data, 528, 608, 704)                                                                  \
    AT(string_wide, 536, 616, 712) /* the size of PyUnicodeObject: one pointer more */             \
    AT(string_state, 544, 624, 720)                                                                \
    AT(string_length, 552, 632, 728)                                                               \
    AT(string_ascii, 560, 640, 736)

static const char cookie[8] = {'x', 'd', 'e', 'b', 'u', 'g', 'p', 'y'};
enum { VERSION_WORD = 1, FREE_THREADED_WORD = 2, NEWEST_MINOR = 0x030f };
enum { MOST_OFFSET = 1 << 20, FRAME_OWNED_BY_INTERPRETER = 3 };

static uint64_t offsets_word(const void *table, size_t place) {
    uint64_t word;
    memcpy(&word, (const char *)table + place, sizeof word);
    return word;
}

static bool python_offsets_take(const void *table, size_t place, uint32_t *offset) {
    const uint64_t word = offsets_word(table, place);
    *offset = (uint32_t)word;
    return word < MOST_OFFSET;
}

/* Returns true if the offsets of pointers and sizes are aligned. */
static bool is_aligned(const struct python_offsets *o) {
    return ((o->current_frame | o->thread_id | o->native_thread_id | o->thread_next |
             o->interpreters_head | o->interpreter_next | o->threads_head | o->previous | o->code |
             o->instruction | o->code_filename | o->code_name | o->code_qualname |
             o->code_linetable | o->type | o->var_size | o->string_length | o->string_wide) &
            7) == 0;
}

static bool fits_a_head(const struct python_offsets *o) {
    const uint32_t last_word = PYTHON_HEAD_BYTES - sizeof(void *);
    return o->type <= last_word && o->var_size <= last_word;
}

static bool fits_a_frame(const struct python_offsets *o) {
    const uint32_t last_word = PYTHON_FRAME_BYTES - sizeof(void *);
    return o->previous <= last_word && o->code <= last_word && o->instruction <= last_word &&
           o->owner < PYTHON_FRAME_BYTES;
}

static bool read_table(uint32_t version, const void *table, struct python_offsets *offsets) {
    const uint32_t release = (version >> MINOR_SHIFT) - MINOR_3_13;
    if (memcmp(table, cookie, sizeof cookie) != 0 ||
        offsets_word(table, VERSION_WORD * sizeof(uint64_t)) != version ||
        offsets_word(table, FREE_THREADED_WORD * sizeof(uint64_t)) != 0)
        return false;
    *offsets = (struct python_offsets){.version = version,
                                       .first_entry_owner = FRAME_OWNED_BY_INTERPRETER};
    bool makes_sense = true;
#define AT(field, of_3_13, of_3_14, of_3_15)                                                       \
    makes_sense &= python_offsets_take(                                                            \
        table, ((const uint16_t[]){of_3_13, of_3_14, of_3_15})[release], &offsets->field);
    OFFSETS_PUBLISHED
#undef AT
    offsets->string_wide -= sizeof(void *);
    return makes_sense && is_aligned(offsets) && fits_a_frame(offsets) && fits_a_head(offsets);
}

bool python_offsets_find(uint32_t version, const void *table, struct python_offsets *offsets) {
    enum { CANDIDATE = 0xc }; /* release candidate: the version's second half-byte from the right */
    const uint32_t minor = version >> MINOR_SHIFT;
    if ((version >> 4 & 15) < CANDIDATE) /* before a release candidate any offset may change */
        return false;
    if (minor >= MINOR_3_13 && minor <= NEWEST_MINOR)
        return read_table(version, table, offsets);
    if (minor != MINOR_3_11 && minor != MINOR_3_12)
        return false;
    *offsets = minor == MINOR_3_11 ? of_3_11 : of_3_12;
    offsets->version = version;
    return true;
}
