/* Lays out frames of Python in hand-made memory as each version does, and walks over them. */
#ifndef OTELPROF_TEST_PYTHON_LAYOUT_H
#define OTELPROF_TEST_PYTHON_LAYOUT_H

#include "python_tables.h"

#include "frame.h"
#include "frames/python_stack.h"

static const struct version {
    uint32_t number;
    uint64_t *table;
} versions[] = {{0x030b02f0, of_3_13}, /* the table of offsets is not read */
                {0x030c01f0, of_3_13},
                {0x030d00f0, of_3_13},
                {0x030e0af0, of_3_14},
                {0x030f02f0, of_3_15}};
enum { VERSIONS = sizeof versions / sizeof *versions };

/* --- memory --- */

enum {
    SLOT_BYTES = 512,
    SLOTS = 6000,
    UNITS = 40,
    CALLED_AT = 7, /* the position of every frame's instruction, in code units */
    TYPE_SLOT = 1,
    THREAD_SLOT = 2,
    ROOM = 64,
};
static _Alignas(4096) uint8_t memory[SLOTS][SLOT_BYTES]; /* memory of the interpreter */
static _Alignas(4096) uint8_t loops[64][SLOT_BYTES];     /* the C stack: a frame with a higher
                                                          * address is further out */
static uint32_t used;
static uint32_t functions_left;
static struct python python;

static uintptr_t slot_at(uint32_t number) {
    return (uintptr_t)memory[number];
}

static uintptr_t fresh(void) {
    assert_true(used < SLOTS);
    return slot_at(used++);
}

static void set(uintptr_t address, uint32_t offset, uintptr_t value) {
    memcpy((void *)(address + offset), &value, sizeof value);
}

static void set_byte(uintptr_t address, uint32_t offset, uint8_t value) {
    *(uint8_t *)(address + offset) = value;
}

/* Replaces the lookup of a function. Returns the number of the slot that has its code, or 0 once
 * `functions_left` lookups have been made. */
uint32_t python_function(struct python_functions *functions, const struct python_offsets *offsets,
                         struct python_reader *reader, uintptr_t code) {
    (void)functions;
    (void)offsets;
    (void)reader;
    if (functions_left == 0)
        return 0;
    functions_left--;
    return (uint32_t)((code - slot_at(0)) / SLOT_BYTES);
}

static void begin(const struct version *version) {
    memset(memory, 0, sizeof memory);
    memset(loops, 0, sizeof loops);
    used = THREAD_SLOT + 1;
    functions_left = UINT32_MAX;
    python = (struct python){.code_type = slot_at(TYPE_SLOT)};
    assert_true(python_offsets_find(version->number, version->table, &python.offsets));
}

static uintptr_t make_code(void) {
    const struct python_offsets *const o = &python.offsets;
    const uintptr_t code = fresh();
    set(code, o->type, python.code_type);
    set(code, o->var_size, UNITS);
    set(code, o->code_name, slot_at(0));
    set(code, o->code_filename, slot_at(1));
    return code;
}

static uintptr_t make_frame(uintptr_t code, uintptr_t previous) {
    const struct python_offsets *const o = &python.offsets;
    const uintptr_t frame = fresh();
    set(frame, o->code, code);
    set(frame, o->previous, previous);
    set(frame, o->instruction, code + o->code_units + CALLED_AT * 2);
    return frame;
}

/* Describes a run of the interpreter's loop. A run refers to the next outer one. */
struct run {
    uintptr_t at;    /* address on the C stack */
    uintptr_t last;  /* the run's outermost frame */
    uintptr_t first; /* the run's innermost frame */
};

/* Makes a run of `count` functions that `outer` has called; NULL: no other run has called it. The
 * codes are numbered from the outermost frame on. */
static struct run make_run(uint32_t place, uint32_t count, const struct run *outer) {
    const struct python_offsets *const o = &python.offsets;
    struct run run = {.at = (uintptr_t)loops[place]};
    const uintptr_t before = outer ? outer->first : 0;
    uintptr_t frame = before;
    if (o->first_entry_owner) { /* 3.12 has this frame beside the _PyCFrame */
        const uintptr_t entry = run.at + (o->cframe ? 64 : 0);
        set(entry, o->previous, before);
        set_byte(entry, o->owner, o->first_entry_owner);
        frame = entry;
    }
    for (uint32_t i = 0; i < count; i++) {
        frame = make_frame(make_code(), frame);
        if (i == 0)
            run.last = frame;
    }
    if (o->is_entry)
        set_byte(run.last, o->is_entry, 1);
    run.first = frame;
    if (o->cframe) {
        set(run.at, o->cframe_frame, run.first);
        set(run.at, o->cframe_previous, outer ? outer->at : slot_at(THREAD_SLOT) + 256);
    }
    return run;
}

static void enter(const struct run *run) {
    const struct python_offsets *const o = &python.offsets;
    if (o->frames_chunk) {
        set(slot_at(THREAD_SLOT), o->frames_chunk, slot_at(0));
        set(slot_at(THREAD_SLOT), o->frames_chunk + 8, slot_at(used));
    }
    set(slot_at(THREAD_SLOT), o->cframe ? o->cframe : o->current_frame,
        o->cframe ? run->at : run->first);
}

/* --- walking --- */

struct walked {
    uint64_t frames[ROOM];
    uint32_t count;
    uint32_t groups; /* number of groups with functions */
    uint32_t tried;
    uint32_t doubts;
};

static struct walked walk_within(uint32_t max, struct stack_range native) {
    struct walked walked = {.count = 0};
    struct python_stack stack = {.python = &python};
    struct unwind unwind = {.frames = walked.frames, .max = max};
    uintptr_t at = 0;
    python_stack_begin(&stack, &python, slot_at(THREAD_SLOT), native);
    while (stack.frames.at && walked.tried < 1000) {
        const uint32_t count = unwind.count;
        assert_true(stack.frames.at > at && stack.frames.at >= native.low &&
                    stack.frames.at < native.high);
        at = stack.frames.at;
        stack.frames.list(&stack.frames, &unwind);
        walked.groups += unwind.count > count;
        walked.tried++;
    }
    assert_true(unwind.count <= max);
    walked.count = unwind.count;
    walked.doubts = stack.doubts;
    return walked;
}

static struct stack_range whole(void) {
    return (struct stack_range){(uintptr_t)loops, (uintptr_t)loops + sizeof loops};
}

static struct walked walk(void) {
    return walk_within(ROOM, whole());
}

static void assert_listed(const struct walked *walked, uint32_t count, uint32_t groups,
                          uint32_t doubts) {
    assert_int_equal(walked->count, count);
    assert_int_equal(walked->groups, groups);
    assert_int_equal(walked->doubts, doubts);
    for (uint32_t i = 0; i < count; i++)
        assert_int_equal(walked->frames[i] >> FRAME_SOURCE_SHIFT, FRAME_CPYTHON);
}

#define FOR_EACH_VERSION for (const struct version *v = versions; v < versions + VERSIONS; v++)

#endif
