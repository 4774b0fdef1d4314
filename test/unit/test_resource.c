/* Tests which attributes of the process an export has: by default those that identify it. */
#include "unit.h"

#include "decoded_export.h"

struct known {
    const char *key;
    bool identifying;
};

static const struct known *known_attribute(const char *key) {
    enum { DESCRIBING, IDENTIFYING };
    static const struct known known[] = {
#define RESOURCE_ATTRIBUTE(key, when, what) {key, when},
#include "resource_attributes.def"
#undef RESOURCE_ATTRIBUTE
    };
    size_t identifying = 0;
    const struct known *found = NULL;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        identifying += known[i].identifying;
        if (strcmp(known[i].key, key) == 0)
            found = &known[i];
    }
    assert_in_range(identifying, 1, 15);
    return found;
}

/* Counts the attributes of an export with one sample: those that the profiler knows, those of them
 * that do not identify the process, and unknown ones. */
static void count_attributes(const char *const *environment, size_t *ours, size_t *describing,
                             size_t *others) {
    const struct capture_api api = fake_capture(environment);
    struct profile_exporter exporter = open_exporter(&api);
    const struct harvest_sample samples[] = {cpu(frames_a, 20000000)};
    fake.samples = samples;
    fake.sample_count = 1;
    const struct encoded_export export = export_once(&exporter, &api);
    Request *const request = decode(&export);
    const Opentelemetry__Proto__Resource__V1__Resource *const resource =
        request->resource_profiles[0]->resource;
    *ours = *describing = *others = 0;
    for (size_t i = 0; i < resource->n_attributes; i++) {
        const struct known *const known = known_attribute(resource->attributes[i]->key);
        *ours += known != NULL;
        *describing += known && !known->identifying;
        *others += !known;
    }
    release(request);
    free(export.protobuf.bytes);
    resource_close((struct resource *)(uintptr_t)exporter.resource);
}

static void identifying_attributes_are_sent_and_others_on_demand(void **state) {
    (void)state;
    size_t ours;
    size_t describing;
    size_t others;
    static const char *const defaults[] = {"OTEL_PROFILER_SYMBOLS=none", NULL};
    count_attributes(defaults, &ours, &describing, &others);
    assert_in_range(ours, 10, 15);
    assert_int_equal(describing, 0);
    assert_int_equal(others, 0);
    static const char *const full[] = {"OTEL_PROFILER_SYMBOLS=none", "OTEL_PROFILER_RESOURCE=full",
                                       NULL};
    count_attributes(full, &ours, &describing, &others);
    assert_in_range(describing, 5, 8);
    assert_int_equal(others, 0);
    static const char *const own[] = {"OTEL_PROFILER_SYMBOLS=none",
                                      "OTEL_RESOURCE_ATTRIBUTES=a=1,b=2,os.version=mine", NULL};
    count_attributes(own, &ours, &describing, &others);
    assert_int_equal(others, 2);
    assert_int_equal(describing, 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(identifying_attributes_are_sent_and_others_on_demand),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
