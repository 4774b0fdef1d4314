#include "python_stack.h"

#include "frame.h"

#include <string.h>

enum {
    FRAME_BYTES = PYTHON_FRAME_BYTES,
    CODE_UNIT_BYTES = 2,
    TAG_BITS = 7, /* from 3.14 on, tag bits of a pointer to an object; 0 in earlier versions */
    TRAMPOLINE_UNITS = 8,
    /* up to 3.12: */
    OWNED_BY_THREAD = 0, /* _PyInterpreterFrame.owner */
    OWNED_BY_GENERATOR = 1,
    GENERATOR_STATE_BEFORE = 5, /* PyGenObject: offset of gi_frame_state, from gi_iframe */
    GENERATOR_EXECUTES = 0,
    LOOP_BYTES = 512, /* largest distance between two variables of the loop's function */
    /* at most so many frames are searched for the entry frame: four times the usual limit */
    GROUP_FRAMES = 4096
};

/* Holds a copy of one frame, so that the frame is read once. */
struct frame {
    uint8_t bytes[FRAME_BYTES];
};

static uintptr_t frame_word(const struct frame *frame, uint32_t offset) {
    uintptr_t word;
    memcpy(&word, &frame->bytes[offset], sizeof word);
    return word;
}

static bool read_frame(struct python_stack *stack, uintptr_t address, struct frame *frame) {
    return address % sizeof(uintptr_t) == 0 &&
           python_read(&stack->reader, address, frame, sizeof *frame);
}

static const struct python_offsets *offsets_of(const struct python_stack *stack) {
    return &stack->python->offsets;
}

/* Returns true for the frame of the loop itself, which belongs to no function. */
static bool is_loops_own(const struct python_stack *stack, const struct frame *frame) {
    const struct python_offsets *const o = offsets_of(stack);
    return o->first_entry_owner && frame->bytes[o->owner] >= o->first_entry_owner;
}

/* --- groups --- */

static void python_stack_end(struct python_stack *stack) {
    stack->frames.at = 0;
    stack->frame = 0;
}

static void python_stack_give_up(struct python_stack *stack) {
    stack->doubts++;
    python_stack_end(stack);
}

/* Sets the place of the present group on the native stack, and moves the lower bound there, because
 * the following groups lie higher. Returns false if the place is not within the bounds. */
static bool python_stack_set_frames(struct python_stack *stack, uintptr_t at) {
    if (at % sizeof(uintptr_t) != 0 || at < stack->native.low || at >= stack->native.high)
        return false;
    stack->native.low = at + 1;
    stack->frames.at = at;
    return true;
}

/* Returns true if the frame is in use. Up to 3.12 the loop runs some instructions before its first
 * frame is set: until then the place points to a dead frame of an earlier run, which still seems
 * intact. A live newest frame is the last one on the frame stack, or belongs to a generator that is
 * executing. */
static bool is_alive(struct python_stack *stack, uintptr_t thread_state) {
    const struct python_offsets *const o = offsets_of(stack);
    struct frame frame;
    uintptr_t chunk[2];
    uint8_t state;
    if (!read_frame(stack, stack->frame, &frame))
        return false;
    switch (frame.bytes[o->owner]) {
    case OWNED_BY_THREAD:
        return python_read(&stack->reader, thread_state + o->frames_chunk, chunk, sizeof chunk) &&
               stack->frame >= chunk[0] && stack->frame < chunk[1];
    case OWNED_BY_GENERATOR:
        return python_read(&stack->reader, stack->frame - GENERATOR_STATE_BEFORE, &state,
                           sizeof state) &&
               state == GENERATOR_EXECUTES;
    default:
        return is_loops_own(stack, &frame);
    }
}

/* Begins a group at its _PyCFrame. Returns without a frame at the last _PyCFrame: it is in the
 * thread's state, and belongs to no run of the loop. */
static void begin_at_cframe(struct python_stack *stack, uintptr_t cframe) {
    const struct python_offsets *const o = offsets_of(stack);
    python_stack_end(stack);
    stack->cframe = cframe;
    if (python_stack_set_frames(stack, cframe) &&
        !python_read_word(&stack->reader, cframe + o->cframe_frame, &stack->frame))
        python_stack_give_up(stack);
}

/* Begins a group at its first frame, and searches for the entry frame behind its last frame. */
static void begin_at_frame(struct python_stack *stack, uintptr_t first) {
    const struct python_offsets *const o = offsets_of(stack);
    struct frame frame;
    uintptr_t address = first;
    python_stack_end(stack);
    for (int i = 0; i < GROUP_FRAMES && address; i++) {
        if (!read_frame(stack, address, &frame))
            break;
        if (is_loops_own(stack, &frame)) {
            if (python_stack_set_frames(stack, address))
                stack->frame = first;
            return; /* the frame is elsewhere: it is the thread's base frame */
        }
        address = frame_word(&frame, o->previous);
    }
    if (address)
        python_stack_give_up(stack);
}

static void begin_group(struct python_stack *stack, uintptr_t at) {
    if (offsets_of(stack)->cframe)
        begin_at_cframe(stack, at);
    else
        begin_at_frame(stack, at);
}

/* Returns the beginning of the next group; 0: none. */
static uintptr_t next_group(struct python_stack *stack) {
    const struct python_offsets *const o = offsets_of(stack);
    const uintptr_t place_of_next =
        o->cframe ? stack->cframe + o->cframe_previous : stack->frames.at + o->previous;
    uintptr_t next;
    return python_read_word(&stack->reader, place_of_next, &next) ? next : 0;
}

/* Returns true if the loop's own frame (up to 3.12) belongs to the present group's loop. */
static bool is_in_loop(const struct python_stack *stack) {
    return stack->frame - stack->cframe + LOOP_BYTES < 2 * LOOP_BYTES;
}

/* Returns true if the last frame of the present group refers to the first frame of the next
 * group. */
static bool frames_are_linked(struct python_stack *stack, const struct frame *last,
                              uintptr_t next) {
    const struct python_offsets *const o = offsets_of(stack);
    uintptr_t first = next;
    if (o->cframe && o->first_entry_owner && !is_in_loop(stack))
        return false;
    if (o->cframe && !python_read_word(&stack->reader, next + o->cframe_frame, &first))
        return false;
    return first == frame_word(last, o->previous);
}

/* --- one function --- */

/* Holds a code object's address, and the fields that are read for each of its frames. */
struct code {
    uintptr_t address;
    uintptr_t units;
};

static bool read_code(struct python_stack *stack, uintptr_t address, struct code *code) {
    const struct python_offsets *const o = offsets_of(stack);
    uint8_t head[PYTHON_HEAD_BYTES];
    uintptr_t type;
    if (address % sizeof type != 0 || !python_read(&stack->reader, address, head, sizeof head))
        return false;
    memcpy(&type, &head[o->type], sizeof type);
    memcpy(&code->units, &head[o->var_size], sizeof code->units);
    code->address = address;
    return type == stack->python->code_type;
}

static uint32_t position_of(const struct python_stack *stack, const struct code *code,
                            uintptr_t instruction) {
    const uintptr_t first = code->address + offsets_of(stack)->code_units;
    if (instruction + CODE_UNIT_BYTES == first) /* the function has not begun yet */
        return 0;
    const uintptr_t position = (instruction - first) / CODE_UNIT_BYTES;
    return position < code->units && position < PYTHON_POSITION_UNKNOWN ? (uint32_t)position
                                                                        : PYTHON_POSITION_UNKNOWN;
}

/* Recognizes the interpreter's own code that calls __init__ since 3.12, which is no function of the
 * program. This code has few instructions, and one string object is both its name and its file
 * name. */
static bool is_trampoline(struct python_stack *stack, const struct code *code) {
    const struct python_offsets *const o = offsets_of(stack);
    uintptr_t name;
    uintptr_t file;
    return code->units <= TRAMPOLINE_UNITS &&
           python_read_word(&stack->reader, code->address + o->code_name, &name) &&
           python_read_word(&stack->reader, code->address + o->code_filename, &file) &&
           name == file;
}

static bool list_frame(struct python_stack *stack, struct unwind *unwind,
                       const struct frame *frame) {
    const struct python_offsets *const o = offsets_of(stack);
    struct code code;
    if (!read_code(stack, frame_word(frame, o->code) & ~(uintptr_t)TAG_BITS, &code))
        return false;
    if (is_trampoline(stack, &code))
        return true;
    const uint32_t function =
        python_function(stack->python->functions, o, &stack->reader, code.address);
    if (!function)
        return false;
    const uint32_t position = position_of(stack, &code, frame_word(frame, o->instruction));
    unwind->frames[unwind->count++] = frame_interned(FRAME_CPYTHON, position, function);
    return true;
}

/* --- one group --- */

enum step { STEP_ON, STEP_LAST, STEP_LOST };

static enum step python_stack_step(struct python_stack *stack, struct unwind *unwind,
                                   struct frame *frame) {
    const struct python_offsets *const o = offsets_of(stack);
    if (!read_frame(stack, stack->frame, frame))
        return STEP_LOST;
    if (is_loops_own(stack, frame))
        return STEP_LAST;
    if (!list_frame(stack, unwind, frame))
        return STEP_LOST;
    if (o->is_entry && frame->bytes[o->is_entry])
        return STEP_LAST;
    stack->frame = frame_word(frame, o->previous);
    return stack->frame ? STEP_ON : STEP_LOST;
}

/* Lists all frames of a group. The room for frames bounds the loop: each step fills a place, except
 * at trampolines, of which no two are adjacent. */
static enum step list_all(struct python_stack *stack, struct unwind *unwind, struct frame *frame) {
    enum step last = STEP_ON;
    for (uint32_t i = 0; last == STEP_ON && unwind->count < unwind->max && i < 2 * unwind->max; i++)
        last = python_stack_step(stack, unwind, frame);
    return last;
}

/* Lists a group, which may be empty: up to 3.12 a greenlet's stack begins with a _PyCFrame of its
 * own. */
static void list_group(struct interpreter_frames *frames, struct unwind *unwind) {
    struct python_stack *const stack = (struct python_stack *)(void *)frames;
    const uint32_t count = unwind->count;
    const bool is_empty = !stack->frame;
    struct frame frame;
    const enum step last = is_empty ? STEP_LAST : list_all(stack, unwind, &frame);
    if (last == STEP_ON) { /* there is no room for more frames */
        python_stack_end(stack);
        return;
    }
    const uintptr_t next = next_group(stack);
    if (last == STEP_LOST || (!is_empty && next && !frames_are_linked(stack, &frame, next))) {
        unwind->count = count;
        stack->doubts++;
    }
    if (next)
        begin_group(stack, next);
    else
        python_stack_end(stack);
}

void python_stack_begin(struct python_stack *stack, const struct python *python,
                        uintptr_t thread_state, struct stack_range native) {
    const struct python_offsets *const o = &python->offsets;
    uintptr_t first;
    stack->frames.list = list_group;
    stack->python = python;
    stack->native = native;
    if (!python_read_word(&stack->reader, thread_state + (o->cframe ? o->cframe : o->current_frame),
                          &first))
        python_stack_give_up(stack);
    else if (first)
        begin_group(stack, first);
    if (o->cframe && stack->frame && !is_alive(stack, thread_state)) {
        stack->doubts++;
        stack->frame = 0; /* no frame of the group is listed */
    }
}
