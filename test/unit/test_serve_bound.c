/* Tests that sums since the start count against the memory that limits leave for requests. */
#include "unit.h"

#include "encode/profile_export.h"
#include "serve/serve_state.h"
#include "summed_exports.h"

uint64_t memory_room(void); /* these replace the functions of the flush side */
uint64_t memory_room_of_program(void);

enum { HELD = 4096 };

uint64_t memory_room(void) {
    return UINT64_MAX;
}

/* Returns as much as a window that holds HELD bytes needs, if no other memory is held. */
uint64_t memory_room_of_program(void) {
    return 3 * HELD;
}

/* Returns true if a window of HELD bytes is refused beside a sum since the start. */
static bool is_refused(struct pprof_sum *sum) {
    struct window window = {.state = WINDOW_TAKES, .form = WINDOW_PPROF};
    struct serve serve = {.windows = &window, .sums = {.are_open = true, .of[PPROF_PROFILE] = sum}};
    const struct encoded nothing = {.bytes = NULL};
    struct otlp_writer *const writer = otlp_writer_open();
    window.exports = (struct wire){.bytes = malloc(HELD), .capacity = HELD};
    serve_take(&serve, writer, &nothing);
    otlp_writer_close(writer);
    if (!window.refused)
        wire_free(&window.exports);
    return window.refused;
}

static void sums_since_the_start_count_against_the_memory_left(void **state) {
    const struct harvest_sample samples[] = {cpu(frames_a, 30000000)};
    (void)state;
    begin();
    assert_false(is_refused(NULL));
    struct pprof_sum *const sum = pprof_sum_open(PPROF_PROFILE);
    add(sum, samples, 1);
    assert_true(pprof_sum_bytes(sum) > 0);
    assert_true(is_refused(sum));
    end(sum);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_since_the_start_count_against_the_memory_left),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
