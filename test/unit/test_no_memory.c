/* Tests an interval in which memory runs out at any one moment and is there again: the values that
 * are kept are right, the losses are counted, and an export is whole or not made. */
#include "unit.h"

#include "encode/contexts.h"
#include "otlp_writer.h"

#include "fake_capture.h"
#include "written_context.h"

/* --- memory that runs out --- */

void *__libc_malloc(size_t size);               /* NOLINT(bugprone-reserved-identifier) */
void *__libc_realloc(void *block, size_t size); /* NOLINT(bugprone-reserved-identifier) */

/* Holds the number of calls that succeed before one fails; below 0: no call fails. */
static int calls_left = -1;

static bool runs_out(void) {
    return calls_left >= 0 && calls_left-- == 0;
}

void *malloc(size_t size) {
    return runs_out() ? NULL : __libc_malloc(size);
}

void *realloc(void *block, size_t size) {
    return runs_out() ? NULL : __libc_realloc(block, size);
}

/* --- the merge --- */

enum { STACKS = 9000, DEPTH = 20, ROUNDS = 2 };

/* Returns the value of a stack in one round: no two stacks have the same. */
static uint64_t worth_of(uint64_t number) {
    return 1000000 + number;
}

static void visit_all(harvest_visit *visit, void *arg) {
    for (uint64_t i = 0; i < (uint64_t)ROUNDS * STACKS; i++) {
        uint64_t frames[DEPTH] = {i % STACKS};
        visit(arg,
              &(struct harvest_sample){.kind = SAMPLE_CPU,
                                       .thread_name = "",
                                       .frames = frames,
                                       .frame_count = DEPTH,
                                       .values = {[MEASURED_NANO] = (double)worth_of(i % STACKS)}});
    }
}

/* Checks that no stack is there twice, or has the time of another. Returns the number of samples
 * that are kept. */
static uint64_t check_items(const struct merge *merge) {
    static bool seen[STACKS];
    uint64_t kept = 0;
    memset(seen, 0, sizeof seen);
    for (size_t i = 0; i < merge->items.count; i++) {
        const struct harvest_sample *const item = merge->items.items[i];
        const uint64_t number = item->frames[0];
        assert_false(seen[number]);
        seen[number] = true;
        const uint64_t nano = (uint64_t)item->values[MEASURED_NANO];
        assert_int_equal(nano % worth_of(number), 0);
        kept += nano / worth_of(number);
    }
    return kept;
}

static void no_stack_gets_the_time_of_another(void **state) {
    (void)state;
    static const char *const nothing[] = {NULL};
    bool complete = false;
    int failures = 0;
    for (int calls = 0; !complete; calls++) {
        struct capture_api api = fake_capture(nothing);
        struct merge merge = {.items = {0}};
        api.harvest.visit = visit_all;
        calls_left = calls;
        complete = merge_harvest(&merge, &api);
        assert_int_equal(complete, calls_left >= 0);
        calls_left = -1;
        failures += !complete;
        const uint64_t kept = check_items(&merge);
        assert_int_equal(kept + fake.dropped[DROP_ENCODE], (uint64_t)ROUNDS * STACKS);
        merge_free(&merge);
    }
    assert_true(failures > 8);
}

/* --- contexts --- */

static struct sample_context contexts[STACKS];

static void visit_contexts(harvest_visit *visit, void *arg) {
    for (uint32_t i = 0; i < STACKS; i++) {
        const uint64_t frame = 7;
        contexts[i] = span_context("trace id, 16 by", "a span,");
        memcpy(contexts[i].span_id, &i, sizeof i);
        contexts[i].span_id[7] = 1;
        put_named(&contexts[i], "a", i % 2 ? "odd" : "even");
        put_named(&contexts[i], "b", "value");
        visit(arg,
              &(struct harvest_sample){
                  .thread_name = "", .frames = &frame, .frame_count = 1, .context = &contexts[i]});
    }
}

/* Returns how many labels there are, and checks that each belongs to its sample. */
static uint64_t check_contexts(const struct merge *merge) {
    uint64_t labels = 0;
    for (size_t i = 0; i < merge->items.count; i++) {
        const struct exported_context *const context = context_of_item(merge, i);
        if (!context)
            continue;
        assert_memory_equal(context->span->span_id, contexts[i].span_id, SPAN_ID_BYTES);
        assert_true(context->number < merge->context_count);
        for (uint32_t k = 0; k < context->label_count; k++) {
            const struct label *const label = &context->labels[k];
            assert_string_equal(label->value, *label->key == 'b' ? "value"
                                              : i % 2            ? "odd"
                                                                 : "even");
        }
        labels += context->label_count;
    }
    return labels;
}

static void no_context_gets_the_labels_of_another(void **state) {
    (void)state;
    static const char *const nothing[] = {NULL};
    static const struct key_names names;
    uint64_t left_out = 1;
    int failures = 0;
    for (int calls = 0; left_out; calls++) {
        struct capture_api api = fake_capture(nothing);
        struct merge merge = {.items = {0}};
        api.harvest.visit = visit_contexts;
        assert_true(merge_harvest(&merge, &api));
        calls_left = calls;
        left_out = contexts_name(&merge, &names, api.config);
        const bool had_enough = calls_left >= 0;
        calls_left = -1;
        assert_int_equal(left_out == 0, had_enough);
        const uint64_t labels = check_contexts(&merge);
        assert_true(had_enough ? labels == 2 * STACKS : labels < 2 * STACKS);
        failures += !had_enough;
        merge_free(&merge);
    }
    assert_true(failures > 3);
}

/* --- the export --- */

static uint8_t *export(size_t *size) {
    static const struct otlp_profile_type type = {"samples", "count", "cpu", "nanoseconds", 1};
    static const uint8_t id[16] = {1};
    struct otlp_writer *const w = otlp_writer_open();
    if (!w)
        return NULL;
    otlp_resource_string(w, "service.name", "a name");
    otlp_resource_double(w, "number", 0);
    otlp_scope(w, "scope", "1");
    struct otlp_profile *const profile = otlp_profile(w, &type, id, 1, 1, 0);
    for (int i = 0; profile && i < STACKS; i++) {
        char name[32];
        snprintf(name, sizeof name, "function %d \xff", i);
        const struct otlp_line line = {otlp_function(w, name, name, "", 0), i};
        const int32_t attribute = otlp_attribute_int(w, "thread.id", i % 100, "");
        const int32_t location = otlp_location(w, 0, (uint64_t)i, &line, 1, attribute);
        const struct otlp_identity identity = {
            .stack = otlp_stack(w, &location, 1), .attributes = &attribute, .attribute_count = 1};
        otlp_sample(w, profile, &identity, 1);
    }
    uint8_t *const bytes = otlp_writer_pack(w, size);
    otlp_writer_close(w);
    return bytes;
}

static void an_export_is_whole_or_none(void **state) {
    (void)state;
    size_t size = 0;
    uint8_t *const whole = export(&size);
    assert_non_null(whole);
    int failures = 0;
    for (int calls = 0;; calls++) {
        size_t size_now = 0;
        calls_left = calls;
        uint8_t *const bytes = export(&size_now);
        const bool had_enough = calls_left >= 0;
        calls_left = -1;
        failures += !bytes;
        if (bytes) {
            assert_int_equal(size_now, size);
            assert_memory_equal(bytes, whole, size);
        }
        free(bytes);
        if (had_enough)
            break;
    }
    assert_true(failures > 8);
    free(whole);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_stack_gets_the_time_of_another),
        cmocka_unit_test(no_context_gets_the_labels_of_another),
        cmocka_unit_test(an_export_is_whole_or_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
