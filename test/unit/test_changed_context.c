/* Tests a context that its thread changes while another thread reads it. The test replaces
 * safe_read(), so that the change comes in the middle of a read, or after it. */
#include "unit.h"

#include "arch_machine.h"
#include "context/context.h"
#include "safe_read.h"

enum { RECORD_BYTES = 28, VALID = 24, HALF = 12 };

static struct modules modules;
static struct context_reader reader = {.sources = CONTEXT_ALL, .modules = &modules};
static __thread const uint8_t *published; /* stands for otel_thread_ctx_v1 */
static uint8_t record[RECORD_BYTES];
/* bytes of the next read of the record that come before the change; 0: no change comes */
static size_t changes_at;

static void fill(uint8_t with) {
    memset(record, with, VALID);
    record[VALID] = 1;
}

bool safe_read(uint64_t address, void *to, size_t size) {
    const uint8_t *const from = (const uint8_t *)(uintptr_t)address;
    const size_t before = from == record ? changes_at : 0;
    memcpy(to, from, before ? before : size);
    if (before) {
        changes_at = 0;
        fill('B');
        memcpy((uint8_t *)to + before, from + before, size - before);
    }
    return true;
}

bool safe_read_here(uint64_t address, void *to, size_t size, bool is_filtered) {
    (void)is_filtered;
    return safe_read(address, to, size);
}

static enum context_outcome look(struct sample_context *context) {
    return context_read_of(&reader, thread_pointer(), NULL, context);
}

static int begin(void **state) {
    const struct thread_variable variable = {
        .source = CONTEXT_THREAD, .offset = (intptr_t)((uintptr_t)&published - thread_pointer())};
    (void)state;
    thread_variables_set(&reader.variables, &variable, 1);
    published = record;
    fill('A');
    changes_at = 0;
    return 0;
}

static void an_unchanged_record_is_read(void **state) {
    struct sample_context context;
    (void)state;
    assert_int_equal(look(&context), CONTEXT_READ);
    assert_memory_equal(context.trace_id, record, TRACE_ID_BYTES);
}

static void a_record_that_changes_within_a_read_is_refused(void **state) {
    struct sample_context context;
    (void)state;
    changes_at = HALF;
    assert_int_equal(look(&context), CONTEXT_WRONG);
    assert_int_equal(look(&context), CONTEXT_READ);
    assert_memory_equal(context.trace_id, record, TRACE_ID_BYTES);
}

static void a_record_that_changes_behind_its_read_is_refused(void **state) {
    struct sample_context context;
    (void)state;
    changes_at = RECORD_BYTES;
    assert_int_equal(look(&context), CONTEXT_WRONG);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(an_unchanged_record_is_read, begin),
        cmocka_unit_test_setup(a_record_that_changes_within_a_read_is_refused, begin),
        cmocka_unit_test_setup(a_record_that_changes_behind_its_read_is_refused, begin),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
