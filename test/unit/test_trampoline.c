/* Tests Python's trampolines for perf (-X perf): a function whose frame is listed is not listed
 * again. */
#include "unit.h"

#include "decoded_export.h"

#include <unistd.h>

enum { OF_PYTHON = 0x5000000, OF_NODE = 0x5001000, UNKNOWN = 0x5002000 };

static char path[64];

static int write_map(void **state) {
    (void)state;
    snprintf(path, sizeof path, "/tmp/perf-%d.map", (int)getpid());
    FILE *const file = fopen(path, "we");
    if (!file)
        return -1;
    fprintf(file, "%x 100 py::interpreted:script.py\n%x 100 JS:*f /a.js:1:1\n", OF_PYTHON, OF_NODE);
    return fclose(file);
}

static int remove_map(void **state) {
    (void)state;
    return unlink(path);
}

/* Returns the number of frames that this stack has in an export. */
static size_t sent(const uint64_t *frames, uint32_t count) {
    static const char *const none[] = {NULL};
    const struct capture_api api = fake_capture(none);
    struct harvest_sample sample = cpu(frames, 30000000);
    sample.frame_count = count;
    fake.samples = &sample;
    fake.sample_count = 1;
    struct profile_exporter exporter = open_exporter(&api);
    symbolizer_trim(exporter.symbolizer);
    const struct encoded_export export = export_once(&exporter, &api);
    Request *const request = decode(&export);
    const size_t stacks = request->dictionary->n_stack_table;
    const size_t listed = request->dictionary->stack_table[stacks - 1]->n_location_indices;
    release(request);
    free(export.protobuf.bytes);
    symbolizer_close(exporter.symbolizer);
    return listed;
}

static void a_trampoline_that_runs_the_listed_function_is_left_out(void **state) {
    (void)state;
    const uint64_t python = frame_interned(1, 0, 1);
    assert_int_equal(sent((const uint64_t[]){python, OF_PYTHON, UNKNOWN}, 3), 2);
    assert_int_equal(sent((const uint64_t[]){python, OF_PYTHON, UNKNOWN, python, OF_PYTHON}, 5), 3);
}

static void all_else_stays(void **state) {
    (void)state;
    const uint64_t python = frame_interned(1, 0, 1);
    assert_int_equal(sent((const uint64_t[]){OF_PYTHON, UNKNOWN}, 2), 2);
    assert_int_equal(sent((const uint64_t[]){UNKNOWN, OF_PYTHON}, 2), 2);
    assert_int_equal(sent((const uint64_t[]){python, OF_NODE}, 2), 2);
    assert_int_equal(sent((const uint64_t[]){python, UNKNOWN, OF_PYTHON}, 3), 3);
    assert_int_equal(sent((const uint64_t[]){python, python, OF_PYTHON}, 3), 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_trampoline_that_runs_the_listed_function_is_left_out),
        cmocka_unit_test(all_else_stays),
    };
    return cmocka_run_group_tests(tests, write_map, remove_map);
}
