/* Tests reading Python frames from hand-made memory in each version's layout: valid frames are
 * listed, doubtful ones are left out. test/integration/test_python_frames.py compares with real
 * interpreters. */
#include "python_layout.h"

/* --- frames that are there --- */

static void groups_are_listed_from_the_innermost_frame(void **state) {
    (void)state;
    FOR_EACH_VERSION {
        begin(v);
        const struct run outer = make_run(9, 2, NULL);
        const struct run middle = make_run(5, 1, &outer);
        const struct run inner = make_run(2, 3, &middle);
        enter(&inner);
        const struct walked walked = walk();
        assert_listed(&walked, 6, 3, 0);
        /* each code has one slot, each frame the one behind it */
        for (uint32_t i = 0; i < 6; i++) {
            assert_int_equal(frame_function(walked.frames[i]), THREAD_SLOT + 1 + 2 * (5 - i));
            assert_int_equal(frame_position(walked.frames[i]), CALLED_AT);
        }
    }
}

static void a_thread_that_runs_nothing_has_no_frames(void **state) {
    (void)state;
    FOR_EACH_VERSION {
        begin(v);
        const struct walked walked = walk();
        assert_listed(&walked, 0, 0, 0);
        assert_int_equal(walked.tried, 0);
    }
}

/* The loop has run its last function, and has not returned yet. */
static void a_run_without_functions_is_passed(void **state) {
    (void)state;
    FOR_EACH_VERSION {
        begin(v);
        if (python.offsets.is_entry) /* 3.11 has no frame of the loop's own */
            continue;
        const struct run outer = make_run(9, 2, NULL);
        const struct run inner = make_run(5, 0, &outer);
        enter(&inner);
        const struct walked walked = walk();
        assert_listed(&walked, 2, 1, 0);
        assert_int_equal(walked.tried, 2);
    }
}

/* Makes a _PyCFrame without frames, with which a greenlet's stack begins up to 3.12: no frame calls
 * its first run. */
static void a_cframe_without_frames_is_no_doubt(void **state) {
    (void)state;
    FOR_EACH_VERSION {
        begin(v);
        if (!python.offsets.cframe)
            continue;
        struct run greenlet = make_run(9, 1, NULL);
        greenlet.first = 0;
        set(greenlet.at, python.offsets.cframe_frame, 0);
        const struct run inner = make_run(5, 2, &greenlet);
        enter(&inner);
        struct walked walked = walk();
        assert_listed(&walked, 2, 1, 0);
        enter(&greenlet); /* the run has finished its last function */
        walked = walk();
        assert_listed(&walked, 0, 0, 0);
    }
}

static void no_more_is_listed_than_there_is_room_for(void **state) {
    (void)state;
    FOR_EACH_VERSION {
        begin(v);
        const struct run outer = make_run(9, 2, NULL);
        const struct run inner = make_run(5, 1000, &outer);
        enter(&inner);
        const struct walked walked = walk();
        assert_listed(&walked, ROOM, 1, 0);
    }
}

static void a_function_that_has_not_begun_is_at_its_beginning(void **state) {
    (void)state;
    FOR_EACH_VERSION {
        begin(v);
        const struct python_offsets *const o = &python.offsets;
        const struct run run = make_run(5, 2, NULL);
        const uintptr_t code = slot_at(THREAD_SLOT + 1);
        enter(&run);
        set(run.last, o->instruction, code + o->code_units - 2);
        set(run.first, o->instruction, slot_at(0)); /* an instruction in no code */
        const struct walked walked = walk();
        assert_listed(&walked, 2, 1, 0);
        assert_int_equal(frame_position(walked.frames[1]), 0);
        assert_int_equal(frame_position(walked.frames[0]), PYTHON_POSITION_UNKNOWN);
    }
}

/* Makes the code by which the interpreter calls __init__: its name is its file's name, too. */
static void the_interpreters_own_code_is_no_function(void **state) {
    (void)state;
    FOR_EACH_VERSION {
        begin(v);
        const struct run run = make_run(5, 3, NULL);
        const uintptr_t code = slot_at(THREAD_SLOT + 3);
        enter(&run);
        set(code, python.offsets.code_filename, slot_at(0));
        struct walked walked = walk();
        assert_listed(&walked, 3, 1, 0); /* too long for that */
        set(code, python.offsets.var_size, 8);
        walked = walk();
        assert_listed(&walked, 2, 1, 0);
    }
}

/* A tag is in the lowest bits of the pointer since 3.14. */
static void tags_of_pointers_do_not_count(void **state) {
    (void)state;
    begin(&versions[VERSIONS - 1]);
    const struct run run = make_run(5, 2, NULL);
    enter(&run);
    set(run.first, python.offsets.code, slot_at(THREAD_SLOT + 3) | 1);
    const struct walked walked = walk();
    assert_listed(&walked, 2, 1, 0);
}

/* --- frames that are not believed --- */

/* Checks that the inner group is in doubt, so that its native frame stays, and that the outer group
 * is listed. */
static void assert_inner_is_left_out(void) {
    const struct walked walked = walk();
    assert_listed(&walked, 2, 1, 1);
}

static void a_frame_without_code_is_in_doubt(void **state) {
    (void)state;
    FOR_EACH_VERSION {
        begin(v);
        const struct run outer = make_run(9, 2, NULL);
        const struct run inner = make_run(5, 3, &outer);
        enter(&inner);
        const uintptr_t wrong[] = {0, 8, slot_at(0), UINTPTR_MAX - 7, 1ul << 47};
        for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
            set(inner.last, python.offsets.code, wrong[i]);
            assert_inner_is_left_out();
        }
    }
}

static void a_function_that_is_not_remembered_is_not_passed_over(void **state) {
    (void)state;
    FOR_EACH_VERSION {
        begin(v);
        const struct run outer = make_run(9, 2, NULL);
        const struct run inner = make_run(5, 1, &outer);
        enter(&inner);
        functions_left = 0;
        const struct walked walked = walk();
        assert_listed(&walked, 0, 0, 2);
        assert_int_equal(walked.tried, 2);
    }
}

/* Up to 3.12 a run is entered before its first frame is there. */
static void a_run_that_is_not_linked_is_left_out(void **state) {
    (void)state;
    FOR_EACH_VERSION {
        begin(v);
        if (!python.offsets.cframe)
            continue;
        const struct run outer = make_run(9, 2, NULL);
        const struct run stale = make_run(12, 2, NULL);
        const struct run inner = make_run(5, 3, &outer);
        const uintptr_t wrong[] = {stale.first, 1, slot_at(0), UINTPTR_MAX - 7};
        enter(&inner);
        for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
            set(inner.at, python.offsets.cframe_frame, wrong[i]);
            assert_inner_is_left_out();
        }
    }
}

/* An earlier run may have left a whole frame there, linked as the present one will be. */
static void a_frame_that_is_no_more_is_left_out(void **state) {
    (void)state;
    FOR_EACH_VERSION {
        begin(v);
        const struct python_offsets *const o = &python.offsets;
        if (!o->cframe)
            continue;
        const struct run outer = make_run(9, 2, NULL);
        const struct run inner = make_run(5, 3, &outer);
        enter(&inner);
        set(slot_at(THREAD_SLOT), o->frames_chunk + 8, inner.first);
        assert_inner_is_left_out();
        set(slot_at(THREAD_SLOT), o->frames_chunk, inner.first + 8);
        set(slot_at(THREAD_SLOT), o->frames_chunk + 8, inner.first + 4096);
        assert_inner_is_left_out();
        set_byte(inner.first, o->owner, 1); /* the frame of a generator */
        struct walked walked = walk();
        assert_listed(&walked, 5, 2, 0);
        set_byte(inner.first - 5, 0, 0xfe); /* a suspended generator */
        assert_inner_is_left_out();
    }
}

static void a_walk_of_any_memory_ends(void **state) {
    (void)state;
    srandom(19);
    FOR_EACH_VERSION for (int round = 0; round < 2000; round++) {
        begin(v);
        const struct run outer = make_run(9, 2, NULL);
        const struct run inner = make_run(5, 3, &outer);
        enter(&inner);
        for (int i = 0; i < 4; i++) { /* each word may lead anywhere */
            const uintptr_t to =
                random() % 2 ? (uintptr_t)loops[random() % 12] : slot_at((uint32_t)random() % used);
            const uint32_t offset = (uint32_t)random() % 16 * 8;
            const uint32_t slot = THREAD_SLOT + (uint32_t)random() % (used - THREAD_SLOT);
            set(random() % 4 ? slot_at(slot) : (uintptr_t)loops[random() % 12], offset,
                to + (uintptr_t)(random() % 3) * 8);
        }
        const struct walked walked = walk();
        assert_true(walked.tried < 64);
    }
}

static void frames_in_a_circle_are_left(void **state) {
    (void)state;
    FOR_EACH_VERSION {
        begin(v);
        const struct run run = make_run(5, 3, NULL);
        enter(&run);
        set(run.last, python.offsets.previous, run.first);
        if (python.offsets.is_entry)
            set_byte(run.last, python.offsets.is_entry, 0);
        const struct walked walked = walk();
        assert_true(walked.count <= ROOM);
        if (!python.offsets.cframe) /* here the walk searches for the end of the run first */
            assert_listed(&walked, 0, 0, 1);
    }
}

static void a_run_below_the_stack_pointer_is_not_believed(void **state) {
    (void)state;
    FOR_EACH_VERSION {
        begin(v);
        const struct run outer = make_run(9, 2, NULL);
        const struct run inner = make_run(5, 3, &outer);
        enter(&inner);
        const struct stack_range above = {(uintptr_t)loops[6], whole().high};
        const struct stack_range below = {(uintptr_t)loops, (uintptr_t)loops[7]};
        struct walked walked = walk_within(ROOM, above);
        assert_listed(&walked, 0, 0, 0);
        walked = walk_within(ROOM, below);
        assert_listed(&walked, 3, 1, 0);
    }
}

static void runs_must_lie_higher_and_higher(void **state) {
    (void)state;
    FOR_EACH_VERSION {
        begin(v);
        const struct run outer = make_run(3, 2, NULL);
        const struct run inner = make_run(5, 3, &outer);
        enter(&inner);
        const struct walked walked = walk();
        assert_listed(&walked, 3, 1, 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(groups_are_listed_from_the_innermost_frame),
        cmocka_unit_test(a_thread_that_runs_nothing_has_no_frames),
        cmocka_unit_test(a_run_without_functions_is_passed),
        cmocka_unit_test(a_cframe_without_frames_is_no_doubt),
        cmocka_unit_test(no_more_is_listed_than_there_is_room_for),
        cmocka_unit_test(a_function_that_has_not_begun_is_at_its_beginning),
        cmocka_unit_test(the_interpreters_own_code_is_no_function),
        cmocka_unit_test(tags_of_pointers_do_not_count),
        cmocka_unit_test(a_frame_without_code_is_in_doubt),
        cmocka_unit_test(a_function_that_is_not_remembered_is_not_passed_over),
        cmocka_unit_test(a_run_that_is_not_linked_is_left_out),
        cmocka_unit_test(a_frame_that_is_no_more_is_left_out),
        cmocka_unit_test(a_walk_of_any_memory_ends),
        cmocka_unit_test(frames_in_a_circle_are_left),
        cmocka_unit_test(a_run_below_the_stack_pointer_is_not_believed),
        cmocka_unit_test(runs_must_lie_higher_and_higher),
    };
    fill_tables();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
