/* Sums over exports for pprof, and the windows that take them. */
#include "unit.h"

#include "encode/compress.h"
#include "serve/window.h"
#include "summed_exports.h"

static void what_is_of_a_time_adds_up_and_of_a_moment_holds_until_the_next(void **state) {
    const struct harvest_sample first[] = {allocated(frames_a, 2, 100), live(frames_a, 2, 100)};
    const struct harvest_sample second[] = {allocated(frames_b, 1, 7), live(frames_a, 1, 50)};
    (void)state;
    begin();
    struct pprof_sum *const sum = pprof_sum_open(PPROF_HEAP);
    add(sum, first, 2);
    assert_int_equal(total(sum, 1), 100);
    assert_int_equal(total(sum, 3), 100);
    add(sum, second, 2);
    assert_int_equal(total(sum, 0), 3);
    assert_int_equal(total(sum, 1), 107);
    assert_int_equal(total(sum, 2), 1);
    assert_int_equal(total(sum, 3), 50);
    assert_int_equal(pprof_sum_count(sum), 2); /* equal stacks of two exports are one sample */
    end(sum);
}

static void each_export_counts_by_its_own_period(void **state) {
    const struct harvest_sample samples[] = {cpu(frames_a, 30000000)};
    (void)state;
    begin();
    struct pprof_sum *const sum = pprof_sum_open(PPROF_PROFILE);
    add(sum, samples, 1);
    add(sum, samples, 1);
    assert_int_equal(total(sum, 0), 6);
    assert_int_equal(total(sum, 1), 60000000);
    end(sum);
}

static void threads_are_told_apart_by_their_ids_and_cpu_time_by_names_alone(void **state) {
    struct harvest_sample samples[] = {cpu(frames_a, 10000000), cpu(frames_a, 10000000)};
    struct pprof_sample sample;
    (void)state;
    begin();
    struct pprof_sum *const sum = pprof_sum_open(PPROF_PROFILE);
    samples[1].tid = 8;
    add(sum, samples, 2);
    assert_int_equal(pprof_sum_count(sum), 1);
    pprof_sum_sample(sum, 0, &sample);
    assert_int_equal(sample.values[0], 2);
    assert_int_equal(sample.label_count, 1);
    assert_string_equal(sample.labels[0].key, "thread.name");
    assert_string_equal(sample.labels[0].text, "worker");
    end(sum);
}

static void it_is_compressed_and_says_what_it_lacks(void **state) {
    const struct harvest_sample samples[] = {cpu(frames_a, 30000000)};
    static uint8_t unpacked[1 << 16];
    const struct pprof_times times = {.unix_nano = 5, .duration_nano = 6};
    size_t size = 0;
    (void)state;
    begin();
    struct pprof_sum *const sum = pprof_sum_open(PPROF_PROFILE);
    add(sum, samples, 1);
    pprof_sum_mark_incomplete(sum);
    uint8_t *const bytes = pprof_sum_encode(sum, PPROF_PROFILE, &times, &size);
    assert_non_null(bytes);
    const size_t unpacked_size = decompress(bytes, size, unpacked, sizeof unpacked);
    assert_true(unpacked_size > 0);
    assert_non_null(memmem(unpacked, unpacked_size, "incomplete", 10));
    assert_non_null(memmem(unpacked, unpacked_size, "nanoseconds", 11));
    free(bytes);
    end(sum);
}

enum { MANY = 150000 }; /* stacks: more than there is room for */

typedef Opentelemetry__Proto__Profiles__V1development__Location Location;
typedef Opentelemetry__Proto__Profiles__V1development__Stack Stack;
typedef Opentelemetry__Proto__Profiles__V1development__Sample Sample;

static char texts[][32] = {"", "samples", "count", "process.executable.build_id.gnu", "better"};
static struct {
    Location locations[MANY];
    Location *location_table[MANY];
    Stack stacks[MANY];
    Stack *stack_table[MANY];
    Sample samples[MANY];
    Sample *sample_table[MANY];
    int32_t numbers[MANY];
    int64_t one;
    char *strings[5];
} many = {.one = 1, .strings = {texts[0], texts[1], texts[2], texts[3], texts[4]}};

/* What the dictionary has beside them: a file with a build id, and a function. */
static struct {
    Opentelemetry__Proto__Profiles__V1development__Mapping mappings[2];
    Opentelemetry__Proto__Profiles__V1development__KeyValueAndUnit attributes[2];
    Opentelemetry__Proto__Common__V1__AnyValue build_id;
    Opentelemetry__Proto__Profiles__V1development__Function functions[2];
    Opentelemetry__Proto__Profiles__V1development__Line line;
    Opentelemetry__Proto__Profiles__V1development__Line *line_table[1];
    int32_t one;
} file;

static void fill_file(void) {
    for (int i = 0; i < 2; i++) {
        opentelemetry__proto__profiles__v1development__mapping__init(&file.mappings[i]);
        opentelemetry__proto__profiles__v1development__key_value_and_unit__init(
            &file.attributes[i]);
        opentelemetry__proto__profiles__v1development__function__init(&file.functions[i]);
    }
    opentelemetry__proto__common__v1__any_value__init(&file.build_id);
    opentelemetry__proto__profiles__v1development__line__init(&file.line);
    file.build_id.value_case = OPENTELEMETRY__PROTO__COMMON__V1__ANY_VALUE__VALUE_STRING_VALUE;
    file.build_id.string_value = texts[2];
    file.attributes[1].key_strindex = 3;
    file.attributes[1].value = &file.build_id;
    file.one = file.line.function_index = 1;
    file.mappings[1].n_attribute_indices = 1;
    file.mappings[1].attribute_indices = &file.one;
    file.functions[1].name_strindex = 4;
    file.line_table[0] = &file.line;
}

static void
describe_file(Opentelemetry__Proto__Profiles__V1development__ProfilesDictionary *dictionary) {
    static Opentelemetry__Proto__Profiles__V1development__Mapping *const mappings[] = {
        &file.mappings[0], &file.mappings[1]};
    static Opentelemetry__Proto__Profiles__V1development__KeyValueAndUnit *const attributes[] = {
        &file.attributes[0], &file.attributes[1]};
    static Opentelemetry__Proto__Profiles__V1development__Function *const functions[] = {
        &file.functions[0], &file.functions[1]};
    dictionary->n_mapping_table = dictionary->n_attribute_table = dictionary->n_function_table = 2;
    dictionary->mapping_table = (void *)(uintptr_t)mappings;
    dictionary->attribute_table = (void *)(uintptr_t)attributes;
    dictionary->function_table = (void *)(uintptr_t)functions;
}

/* Code of that file, whose name is known only now. */
static void name_code(Location *location) {
    location->n_lines = 1;
    location->lines = file.line_table;
}

/* Stacks of one frame each, and a sample of 1 for each. */
static void fill_many(void) {
    fill_file();
    for (int32_t i = 0; i < MANY; i++) {
        many.numbers[i] = i;
        opentelemetry__proto__profiles__v1development__location__init(&many.locations[i]);
        opentelemetry__proto__profiles__v1development__stack__init(&many.stacks[i]);
        opentelemetry__proto__profiles__v1development__sample__init(&many.samples[i]);
        many.locations[i].address = (uint64_t)i + 1;
        many.locations[i].mapping_index = 1;
        many.stacks[i].n_location_indices = 1;
        many.stacks[i].location_indices = &many.numbers[i];
        many.samples[i].stack_index = i;
        many.samples[i].n_values = 1;
        many.samples[i].values = &many.one;
        many.location_table[i] = &many.locations[i];
        many.stack_table[i] = &many.stacks[i];
        many.sample_table[i] = &many.samples[i];
    }
}

/* A request with `count` of the samples, from `first` on. */
static void add_some(struct pprof_sum *sum, int32_t first, size_t count) {
    Opentelemetry__Proto__Profiles__V1development__ValueType type;
    Profile profile;
    Opentelemetry__Proto__Profiles__V1development__ScopeProfiles scope;
    Opentelemetry__Proto__Profiles__V1development__ResourceProfiles resource;
    Opentelemetry__Proto__Profiles__V1development__ProfilesDictionary dictionary;
    Request some;
    opentelemetry__proto__profiles__v1development__value_type__init(&type);
    opentelemetry__proto__profiles__v1development__profile__init(&profile);
    opentelemetry__proto__profiles__v1development__scope_profiles__init(&scope);
    opentelemetry__proto__profiles__v1development__resource_profiles__init(&resource);
    opentelemetry__proto__profiles__v1development__profiles_dictionary__init(&dictionary);
    opentelemetry__proto__collector__profiles__v1development__export_profiles_service_request__init(
        &some);
    type.type_strindex = 1;
    profile.sample_type = &type;
    profile.period = 10;
    profile.n_samples = count;
    profile.samples = many.sample_table + first;
    scope.n_profiles = 1;
    scope.profiles = (Profile *[]){&profile};
    resource.n_scope_profiles = 1;
    resource.scope_profiles =
        (Opentelemetry__Proto__Profiles__V1development__ScopeProfiles *[]){&scope};
    some.n_resource_profiles = 1;
    some.resource_profiles =
        (Opentelemetry__Proto__Profiles__V1development__ResourceProfiles *[]){&resource};
    some.dictionary = &dictionary;
    describe_file(&dictionary);
    dictionary.n_string_table = sizeof many.strings / sizeof *many.strings;
    dictionary.string_table = many.strings;
    dictionary.n_location_table = dictionary.n_stack_table = MANY;
    dictionary.location_table = many.location_table;
    dictionary.stack_table = many.stack_table;
    pprof_sum_add(sum, &some);
}

static int64_t count_of(const struct pprof_sum *sum, const char *function, uint64_t address) {
    struct pprof_sample sample;
    struct pprof_frame frame;
    for (size_t i = 0; i < pprof_sum_count(sum); i++) {
        pprof_sum_sample(sum, i, &sample);
        if (pprof_stack_frames(pprof_sum_tables(sum), sample.stack, &frame, 1) == 1 &&
            strcmp(frame.function, function) == 0 && frame.address == address)
            return sample.values[0];
    }
    return 0;
}

static void a_full_sum_goes_on_for_what_it_knows_and_stays_whole(void **state) {
    (void)state;
    fill_many();
    struct pprof_sum *const sum = pprof_sum_open(PPROF_PROFILE);
    add_some(sum, 0, MANY);
    const int64_t other = count_of(sum, "[other]", 0);
    assert_true(other > 0 && other < MANY);
    assert_int_equal(total(sum, 0), MANY);
    add_some(sum, 0, 5);
    add_some(sum, MANY - 5, 5);
    assert_int_equal(count_of(sum, "", 1), 2);
    assert_int_equal(count_of(sum, "[other]", 0), other + 5);
    assert_int_equal(total(sum, 0), MANY + 10);
    assert_true(pprof_sum_bytes(sum) < 32 << 20);
    pprof_sum_close(sum);
}

static void code_of_a_file_is_the_same_when_it_gets_a_name(void **state) {
    (void)state;
    fill_many();
    struct pprof_sum *const sum = pprof_sum_open(PPROF_PROFILE);
    add_some(sum, 0, 2);
    name_code(&many.locations[0]);
    add_some(sum, 0, 2);
    assert_int_equal(pprof_sum_count(sum), 2);
    assert_int_equal(count_of(sum, "better", 1), 2);
    assert_int_equal(count_of(sum, "", 2), 2);
    many.locations[0].n_lines = 0; /* and does not lose it */
    add_some(sum, 0, 1);
    assert_int_equal(count_of(sum, "better", 1), 3);
    pprof_sum_close(sum);
}

static void a_full_sum_knows_code_that_gets_a_name(void **state) {
    (void)state;
    fill_many();
    struct pprof_sum *const sum = pprof_sum_open(PPROF_PROFILE);
    add_some(sum, 0, MANY);
    name_code(&many.locations[0]);
    add_some(sum, 0, 1);
    assert_int_equal(count_of(sum, "", 1), 2);
    assert_int_equal(total(sum, 0), MANY + 1);
    pprof_sum_close(sum);
}

/* --- windows --- */

static struct http_request request;

static void a_window_begins_and_ends_with_exports(void **state) {
    (void)state;
    struct window *const window = window_open(&request, WINDOW_PPROF, 100);
    assert_int_equal(window->state, WINDOW_BEGINS);
    assert_int_equal(window_wants(window), 0); /* an export at once */
    window_end_export(window, 1000, 5000);
    assert_int_equal(window->state, WINDOW_TAKES);
    assert_int_equal(window_wants(window), 1100);
    window_end_export(window, 1050, 5050); /* another's */
    assert_int_equal(window->state, WINDOW_TAKES);
    window_end_export(window, 1101, 5101);
    assert_int_equal(window->state, WINDOW_DONE);
    assert_int_equal(window->begin_unix, 5000);
    assert_int_equal(window->end_unix, 5101);
    assert_true(window_wants(window) == UINT64_MAX);
    window_close(window);
}

static void a_window_without_length_ends_with_the_next_export(void **state) {
    (void)state;
    struct window *const window = window_open(&request, WINDOW_FLUSH, 0);
    assert_int_equal(window_wants(window), 0);
    window_end_export(window, 1000, 5000);
    assert_int_equal(window->state, WINDOW_DONE);
    window_close(window);
}

static void what_comes_before_a_window_begins_is_not_in_it(void **state) {
    static const uint8_t message[] = {1, 2, 3};
    (void)state;
    struct window *const window = window_open(&request, WINDOW_OTLP, 100);
    window_take_bytes(window, message, sizeof message);
    assert_int_equal(window->exports.size, 0);
    window_end_export(window, 1000, 5000);
    window_take_bytes(window, message, sizeof message);
    assert_int_equal(window->exports.size, 7);
    assert_memory_equal(window->exports.bytes, "\0\0\0\3\1\2\3", 7);
    window_close(window);
}

static void exports_of_a_window_have_a_bound(void **state) {
    static uint8_t message[16 << 20];
    (void)state;
    struct window *const window = window_open(&request, WINDOW_OTLP, 0);
    for (int i = 0; i < 5; i++)
        window_take_bytes(window, message, sizeof message);
    assert_true(window->exports.failed);
    assert_true(window->exports.size <= WINDOW_MOST_BYTES);
    window_close(window);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_of_a_time_adds_up_and_of_a_moment_holds_until_the_next),
        cmocka_unit_test(each_export_counts_by_its_own_period),
        cmocka_unit_test(threads_are_told_apart_by_their_ids_and_cpu_time_by_names_alone),
        cmocka_unit_test(it_is_compressed_and_says_what_it_lacks),
        cmocka_unit_test(a_full_sum_goes_on_for_what_it_knows_and_stays_whole),
        cmocka_unit_test(code_of_a_file_is_the_same_when_it_gets_a_name),
        cmocka_unit_test(a_full_sum_knows_code_that_gets_a_name),
        cmocka_unit_test(a_window_begins_and_ends_with_exports),
        cmocka_unit_test(a_window_without_length_ends_with_the_next_export),
        cmocka_unit_test(what_comes_before_a_window_begins_is_not_in_it),
        cmocka_unit_test(exports_of_a_window_have_a_bound),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
