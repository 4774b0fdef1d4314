/* Tests that a sample of a thread gets the context that the program has set for the thread: whole,
 * or not at all while it is being changed. */
#include "unit.h"

#include "arch_machine.h"
#include "context/context.h"
#include "context/program_context.h"

#include <signal.h>
#include <ucontext.h>

static const uint8_t trace[TRACE_ID_BYTES] = "trace of a test";
static const uint8_t span[SPAN_ID_BYTES] = "span 01";
static struct program_context *own;
static struct sample_context read_context;

static int begin(void **state) {
    (void)state;
    own = program_context_make(70);
    memset(&read_context, 0xff, sizeof read_context);
    return own ? 0 : -1;
}

/* Returns the labels as "key=value key=value". */
static const char *labels(void) {
    static char text[2 * CONTEXT_ATTRIBUTE_BYTES];
    struct context_attribute attribute;
    uint32_t at = 0;
    size_t size = 0;
    while (context_next_attribute(&read_context, &at, &attribute))
        size += (size_t)sprintf(text + size, "%s%.*s=%.*s", size ? " " : "", attribute.key_bytes,
                                (const char *)attribute.key, attribute.value_bytes,
                                (const char *)attribute.value);
    text[size] = 0;
    assert_int_equal(at, read_context.attribute_bytes);
    return text;
}

static const char *read_labels(enum context_outcome expected) {
    assert_int_equal(program_context_read(own, &read_context), expected);
    return labels();
}

static void nothing_is_said_at_first(void **state) {
    (void)state;
    uint8_t ids[24];
    assert_int_equal(program_context_read(own, &read_context), CONTEXT_NONE);
    program_context_get_span(own, ids, ids + 16);
    for (size_t i = 0; i < sizeof ids; i++)
        assert_int_equal(ids[i], 0);
}

static void a_span_is_set_and_cleared(void **state) {
    (void)state;
    uint8_t ids[24];
    program_context_set_span(own, trace, span);
    assert_int_equal(program_context_read(own, &read_context), CONTEXT_READ);
    assert_memory_equal(read_context.trace_id, trace, sizeof trace);
    assert_memory_equal(read_context.span_id, span, sizeof span);
    assert_int_equal(read_context.attribute_bytes, 0);
    assert_int_equal(read_context.reserved, 0);
    program_context_get_span(own, ids, ids + 16);
    assert_memory_equal(ids, trace, sizeof trace);
    assert_memory_equal(ids + 16, span, sizeof span);
    program_context_set_span(own, trace, NULL);
    assert_int_equal(program_context_read(own, &read_context), CONTEXT_NONE);
}

/* Mixes any word of one span with the rest of the other. */
static void a_mixture_of_two_spans_is_none(void **state) {
    (void)state;
    static const uint8_t other[TRACE_ID_BYTES] = "another trace";
    struct program_content *const content = &own->contents[0];
    program_context_set_span(own, other, (const uint8_t *)"span 02");
    const struct program_content second = *content;
    for (unsigned of_second = 1; of_second < 15; of_second++) {
        program_context_set_span(own, trace, span);
        for (unsigned i = 0; i < 3; i++)
            if (of_second & 1u << i)
                content->span[i] = second.span[i];
        if (of_second & 8)
            content->check = second.check;
        assert_int_equal(program_context_read(own, &read_context), CONTEXT_WRONG);
        uint8_t ids[24];
        program_context_get_span(own, ids, ids + 16);
        assert_int_equal(ids[0] | ids[8] | ids[16], 0);
    }
}

struct record {
    uint8_t trace_id[TRACE_ID_BYTES];
    uint8_t span_id[SPAN_ID_BYTES];
    uint8_t valid;
    uint8_t rest[3];
};

/* A thread that works for one span of the program's, and then for another, never worked for the
 * span that an instrumentation has published meanwhile. */
static void a_change_shows_no_other_sources_span(void **state) {
    static __thread const struct record *variable;
    static const struct record published = {{1}, {9}, 1, {0}};
    static struct context_reader reader = {.sources = CONTEXT_OTELPROF | CONTEXT_THREAD};
    const int64_t offset = (int64_t)((uintptr_t)&variable - thread_pointer());
    const struct thread_variable list[] = {
        {.source = CONTEXT_THREAD, .offset = offset, .block = offset, .bytes = sizeof variable}};
    (void)state;
    variable = &published;
    thread_variables_set(&reader.variables, list, 1);
    assert_int_equal(context_read(&reader, own, &read_context), CONTEXT_READ);
    assert_int_equal(read_context.span_id[0], 9);
    program_context_set_span(own, trace, span);
    assert_int_equal(context_read(&reader, own, &read_context), CONTEXT_READ);
    assert_memory_equal(read_context.span_id, span, sizeof span);
    own->contents[0].span[2] ^= 1;
    assert_int_equal(context_read(&reader, own, &read_context), CONTEXT_WRONG);
}

static void labels_are_a_stack(void **state) {
    (void)state;
    assert_int_equal(program_context_push(own, "a", "1"), 0);
    assert_int_equal(program_context_push(own, "b", ""), 1);
    assert_string_equal(read_labels(CONTEXT_READ), "a=1 b=");
    assert_int_equal(program_context_push(own, "a", "2"), 2);
    assert_string_equal(read_labels(CONTEXT_READ), "b= a=2");
    assert_int_equal(program_context_push(own, "a", "3"), 3);
    assert_string_equal(read_labels(CONTEXT_READ), "b= a=3");
    program_context_pop_to(own, 3);
    assert_string_equal(read_labels(CONTEXT_READ), "b= a=2");
    program_context_pop_to(own, 7);
    program_context_pop_to(own, 1);
    assert_string_equal(read_labels(CONTEXT_READ), "a=1");
    program_context_pop_to(own, 0);
    program_context_pop_to(own, 0);
    assert_int_equal(program_context_read(own, &read_context), CONTEXT_NONE);
}

/* Adds labels to a context with attributes of another source. */
static void labels_are_added_to_the_attributes_of_another_source(void **state) {
    (void)state;
    memset(&read_context, 0, sizeof read_context);
    memcpy(read_context.attributes, "\1\1k1", 4);
    read_context.attribute_bytes = 4;
    program_context_push(own, "a", "old");
    program_context_push(own, "a", "22");
    assert_true(program_context_add_labels(own, &read_context));
    assert_string_equal(labels(), "k=1 a=22");
    assert_int_equal(read_context.attributes[9], 0);

    read_context.attribute_bytes = 0;
    for (int i = 0; i < CONTEXT_ATTRIBUTES - 1; i++, read_context.attribute_bytes += 4)
        memcpy(read_context.attributes + read_context.attribute_bytes, "\1\1k1", 4);
    assert_true(program_context_add_labels(own, &read_context)); /* labels take the last place */
    assert_false(program_context_add_labels(own, &read_context));
    assert_int_equal(read_context.attribute_bytes, 4 * (CONTEXT_ATTRIBUTES - 1) + 5);
}

/* The table of samples compares words. */
static void bytes_behind_the_last_label_are_zero(void **state) {
    (void)state;
    program_context_push(own, "key", "value");
    assert_string_equal(read_labels(CONTEXT_READ), "key=value");
    assert_int_equal(read_context.attribute_bytes, 10);
    for (size_t i = 10; i < 16; i++)
        assert_int_equal(read_context.attributes[i], 0);
}

/* Pushes labels that do not fit: each counts, and pops as any other does. It hides the older value
 * of its key. */
static void a_label_that_does_not_fit_is_not_there(void **state) {
    (void)state;
    char long_text[PROGRAM_TEXT_BYTES + 2];
    memset(long_text, 'x', sizeof long_text);
    long_text[sizeof long_text - 1] = 0;
    const struct {
        const char *key, *value;
        const char *seen;
    } cases[] = {
        {"a", long_text, ""}, {long_text, "1", "a=1"}, {NULL, "1", "a=1"},
        {"a", NULL, ""},      {"", "1", "a=1"},        {NULL, NULL, "a=1"},
    };
    program_context_push(own, "a", "1");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(program_context_push(own, cases[i].key, cases[i].value), 1);
        assert_string_equal(read_labels(CONTEXT_CUT), cases[i].seen);
        assert_int_equal(program_context_push(own, "b", "2"), 2);
        program_context_pop_to(own, 1);
        assert_string_equal(read_labels(CONTEXT_READ), "a=1");
    }
    long_text[PROGRAM_TEXT_BYTES] = 0;
    program_context_push(own, "a", long_text);
    assert_int_equal(program_context_read(own, &read_context), CONTEXT_READ);
    program_context_push(own, "c", long_text); /* no room is left */
    assert_int_equal(program_context_read(own, &read_context), CONTEXT_CUT);
}

static void more_labels_than_fit_stay_balanced(void **state) {
    (void)state;
    char key[8];
    for (uint32_t i = 0; i < 3 * PROGRAM_LABELS; i++) {
        sprintf(key, "k%u", i % 20);
        assert_int_equal(program_context_push(own, key, "v"), i);
        assert_int_equal(program_context_read(own, &read_context),
                         i < PROGRAM_LABELS ? CONTEXT_READ : CONTEXT_CUT);
    }
    assert_int_equal(program_context_depth(own), 3 * PROGRAM_LABELS);
    assert_string_equal(read_labels(CONTEXT_CUT), "");
    program_context_pop_to(own, 2);
    assert_string_equal(read_labels(CONTEXT_READ), "k0=v k1=v");
}

/* --- a context as a whole --- */

static void an_event_loop_switches_contexts(void **state) {
    (void)state;
    struct program_content first = {0};
    struct program_content second = {0};
    program_context_push(own, "loop", "1");
    program_context_swap(own, &first);
    assert_int_equal(program_context_read(own, &read_context), CONTEXT_NONE);
    program_context_set_span(own, trace, span);
    program_context_push(own, "request", "first");
    program_context_swap(own, &first);
    assert_string_equal(read_labels(CONTEXT_READ), "loop=1");
    program_context_swap(own, &second);
    program_context_push(own, "request", "second");
    program_context_push(own, "request", "third");
    program_context_swap(own, &second);
    program_context_swap(own, &first);
    assert_string_equal(read_labels(CONTEXT_READ), "request=first");
    assert_true(context_has_span(&read_context));
    program_context_swap(own, &first);
    program_context_swap(own, &second);
    assert_string_equal(read_labels(CONTEXT_READ), "request=third");
    assert_false(context_has_span(&read_context));
    program_context_pop_to(own, 1);
    assert_string_equal(read_labels(CONTEXT_READ), "request=second");
    program_context_restore(own, &first);
    assert_string_equal(read_labels(CONTEXT_READ), "request=first");
}

/* Fills the context with bytes at random: it is the program's memory. */
static void a_context_of_garbage_is_an_empty_one(void **state) {
    (void)state;
    struct program_content whole = {0};
    program_context_set_span(own, trace, span);
    program_context_push(own, "key", "value");
    program_context_push(own, "key", "another");
    program_context_save(own, &whole);
    const size_t used = offsetof(struct program_content, bytes) + 24;
    for (size_t at = 0; at < used; at++)
        for (unsigned bit = 0; bit < 8; bit++) {
            struct program_content garbage = whole;
            ((uint8_t *)&garbage)[at] ^= (uint8_t)(1u << bit);
            program_context_restore(own, &garbage);
            const enum context_outcome outcome = program_context_read(own, &read_context);
            if (outcome == CONTEXT_NONE)
                continue;
            (void)labels();
            assert_true(read_context.attribute_bytes <= PROGRAM_LABEL_BYTES);
            program_context_push(own, "key", "third");
            program_context_pop_to(own, 0);
        }
    memset(&whole, 0xff, sizeof whole);
    program_context_restore(own, &whole);
    assert_int_equal(program_context_read(own, &read_context), CONTEXT_NONE);
}

/* --- at any instruction --- */

static volatile sig_atomic_t faults;

static bool is_whole(const struct sample_context *seen) {
    struct context_attribute attribute;
    uint32_t at = 0;
    const uint8_t name = seen->span_id[0];
    for (size_t i = 0; i < TRACE_ID_BYTES; i++)
        if (seen->trace_id[i] != name)
            return false;
    for (size_t i = 0; i < SPAN_ID_BYTES; i++)
        if (seen->span_id[i] != name)
            return false;
    while (context_next_attribute(seen, &at, &attribute))
        for (size_t i = 0; i < attribute.value_bytes; i++)
            if (attribute.value[i] != attribute.value[0] || attribute.value_bytes != 20)
                return false;
    return at == seen->attribute_bytes;
}

static void look(void) {
    struct sample_context seen;
    const enum context_outcome outcome = program_context_read(own, &seen);
    if ((outcome == CONTEXT_READ && !is_whole(&seen)) || outcome == CONTEXT_CUT)
        faults++;
}

static void set_all(uint8_t name) {
    uint8_t ids[24];
    memset(ids, name, sizeof ids);
    program_context_set_span(own, ids, ids + 16);
}

/* Changes the context as a handler of the program's does, and reads it in between. */
static void change_and_restore(void) {
    uint8_t before[24];
    look();
    program_context_get_span(own, before, before + 16);
    const uint32_t depth = program_context_push(own, "k", "hhhhhhhhhhhhhhhhhhhh");
    set_all('h');
    look();
    program_context_pop_to(own, depth);
    program_context_set_span(own, before, before + 16);
    look();
}

enum { TRAP_FLAG = 0x100 }; /* of the processor: a trap after each instruction */

static volatile unsigned instructions;
static volatile unsigned interrupted_at;

static void on_trap(int number, siginfo_t *info, void *context) {
    (void)number, (void)info;
    ucontext_t *const interrupted = context;
    if (++instructions < interrupted_at)
        return;
    change_and_restore();
    interrupted->uc_mcontext.gregs[REG_EFL] &= ~TRAP_FLAG;
}

static void expect_span(uint8_t name) {
    uint8_t ids[24];
    program_context_get_span(own, ids, ids + 16);
    if (ids[0] != name || ids[8] != name || ids[16] != name)
        faults++;
}

static void change_all(uint8_t name, struct program_content *other) {
    char value[21] = "";
    memset(value, name, 20);
    set_all(name);
    expect_span(name);
    const uint32_t depth = program_context_push(own, "k", value);
    program_context_push(own, "k", "rrrrrrrrrrrrrrrrrrrr");
    program_context_pop_to(own, depth + 1);
    program_context_swap(own, other);
    program_context_swap(own, other);
    expect_span(name);
    look();
    program_context_pop_to(own, depth);
}

static void change_span(uint8_t name, struct program_content *other) {
    (void)other;
    set_all(name);
    expect_span(name);
}

/* Interrupts at every `stride`th instruction, until no such instruction is left. */
static void interrupt(void (*change)(uint8_t name, struct program_content *other),
                      unsigned stride) {
    struct program_content other = {0};
    interrupted_at = 0;
    do {
        instructions = 0;
        interrupted_at += stride;
        __builtin_ia32_writeeflags_u64(__builtin_ia32_readeflags_u64() | TRAP_FLAG);
        change((uint8_t)('a' + interrupted_at % 5), &other);
        __builtin_ia32_writeeflags_u64(__builtin_ia32_readeflags_u64() & ~(unsigned)TRAP_FLAG);
    } while (instructions >= interrupted_at && faults == 0);
}

static void a_handler_may_interrupt_at_any_instruction(void **state) {
    (void)state;
    const struct sigaction action = {.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO};
    struct sigaction old;
    assert_int_equal(sigaction(SIGTRAP, &action, &old), 0);
    interrupt(change_span, 1);
    assert_true(interrupted_at > 30);
    interrupt(change_all, 23);
    assert_true(interrupted_at > 300);
    assert_int_equal(sigaction(SIGTRAP, &old, NULL), 0);
    assert_int_equal(faults, 0);
}

/* --- its memory --- */

static void a_new_thread_of_a_slot_begins_with_none(void **state) {
    (void)state;
    program_context_set_span(own, trace, span);
    program_context_push(own, "a", "1");
    assert_ptr_equal(program_context_make(70), own);
    assert_int_equal(program_context_read(own, &read_context), CONTEXT_NONE);
    program_context_push(own, "a", "1");
    assert_string_equal(read_labels(CONTEXT_READ), "a=1");
    assert_null(program_context_make(UINT32_MAX));
}

static void a_forked_thread_keeps_its_own(void **state) {
    (void)state;
    program_context_set_span(own, trace, span);
    program_context_push(own, "a", "1");
    struct program_context *const kept = program_context_keep(0, own);
    assert_ptr_not_equal(kept, own);
    own = kept;
    assert_string_equal(read_labels(CONTEXT_READ), "a=1");
    assert_memory_equal(read_context.span_id, span, sizeof span);
    assert_ptr_equal(program_context_keep(0, own), own);
    assert_string_equal(read_labels(CONTEXT_READ), "a=1");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(nothing_is_said_at_first, begin),
        cmocka_unit_test_setup(a_span_is_set_and_cleared, begin),
        cmocka_unit_test_setup(a_mixture_of_two_spans_is_none, begin),
        cmocka_unit_test_setup(a_change_shows_no_other_sources_span, begin),
        cmocka_unit_test_setup(labels_are_a_stack, begin),
        cmocka_unit_test_setup(labels_are_added_to_the_attributes_of_another_source, begin),
        cmocka_unit_test_setup(bytes_behind_the_last_label_are_zero, begin),
        cmocka_unit_test_setup(a_label_that_does_not_fit_is_not_there, begin),
        cmocka_unit_test_setup(more_labels_than_fit_stay_balanced, begin),
        cmocka_unit_test_setup(an_event_loop_switches_contexts, begin),
        cmocka_unit_test_setup(a_context_of_garbage_is_an_empty_one, begin),
        cmocka_unit_test_setup(a_handler_may_interrupt_at_any_instruction, begin),
        cmocka_unit_test_setup(a_new_thread_of_a_slot_begins_with_none, begin),
        cmocka_unit_test_setup(a_forked_thread_keeps_its_own, begin),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
