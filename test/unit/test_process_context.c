/* Tests reading the context that an application publishes about itself: the profiler reads it while
 * it is there and whole, and never trusts it. */
#include "unit.h"

#include "context_message.h"
#include "encode/process_context.h"
#include "encode/resource.h"
#include "fake_capture.h"

#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

/* --- the place of the context --- */

static uint64_t context_at(const char *line) {
    const struct process_mapping mapping = process_mapping_parse(line);
    return process_context_mapping(&mapping);
}

static void mappings_are_known_by_their_names(void **state) {
    (void)state;
#define FRONT "7f12a000-7f12b000 rw-s 00000000 00:01 2051                       "
    static const struct {
        const char *line;
        uint64_t address;
    } cases[] = {
        {FRONT "/memfd:OTEL_CTX (deleted)", 0x7f12a000},
        {FRONT "/memfd:OTEL_CTX", 0x7f12a000},
        {FRONT "[anon_shmem:OTEL_CTX]", 0x7f12a000},
        {"7fffffffe000-7ffffffff000 rw-p 00000000 00:00 0  [anon:OTEL_CTX]", 0x7fffffffe000},
        {FRONT "/tmp/memfd:OTEL_CTX", 0},
        {FRONT "[anon:OTEL_CTX2]", 0},
        {FRONT "[heap]", 0},
        {FRONT, 0},
        {"7f12a000-7f12b000 rw-s", 0},
        {"", 0},
        {"[anon:OTEL_CTX]", 0},
    };
#undef FRONT
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(context_at(cases[i].line), cases[i].address);
}

/* --- the publisher --- */

struct header {
    char signature[8];
    uint32_t version;
    uint32_t payload_size;
    uint64_t published_nano;
    const void *payload;
};

static struct header *publish(const struct message *message) {
    const int file = memfd_create("OTEL_CTX", MFD_CLOEXEC);
    assert_true(file >= 0 && ftruncate(file, 4096) == 0);
    struct header *const header = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    assert_true(header != MAP_FAILED);
    close(file);
    *header = (struct header){.version = 2,
                              .payload_size = (uint32_t)message->size,
                              .published_nano = 1,
                              .payload = message->bytes};
    memcpy(header->signature, "OTEL_CTX", 8);
    return header;
}

static void withdraw(struct header *header) {
    munmap(header, 4096);
}

static struct log quiet = {.level = LOG_NONE};

static void a_published_context_is_followed(void **state) {
    (void)state;
    struct process_context context = {.log = &quiet};
    struct attribute_set set = {.count = 0};
    assert_false(process_context_update(&context, &set));
    context.no_search_before = 0;

    struct header *header = publish(message_with("k", "first"));
    assert_true(process_context_update(&context, &set));
    assert_string_equal(text_in(&set, "k"), "first");
    assert_false(process_context_update(&context, &set));

    header->published_nano = 0; /* a write is in progress */
    header->payload_size = (uint32_t)message_with("other", "second")->size;
    assert_false(process_context_update(&context, &set));
    assert_string_equal(text_in(&set, "k"), "first");
    header->published_nano = 2;
    assert_true(process_context_update(&context, &set));
    assert_null(text_in(&set, "k"));
    assert_string_equal(text_in(&set, "other"), "second");

    withdraw(header);
    assert_true(process_context_update(&context, &set));
    assert_int_equal(set.count, 0);
    context.no_search_before = 0;
    header = publish(message_with("k", "third"));
    assert_true(process_context_update(&context, &set));
    assert_string_equal(text_in(&set, "k"), "third");
    withdraw(header);
    attributes_clear(&set);
}

/* Finds a context without its signature, of another version, or during a write, before it is
 * complete. */
static void an_unfinished_context_is_awaited(void **state) {
    (void)state;
    struct process_context context = {.log = &quiet};
    struct attribute_set set = {.count = 0};
    struct header *const header = publish(message_with("k", "v"));
    header->signature[0] = 0;
    assert_false(process_context_update(&context, &set));
    assert_int_equal(context.address, 0);
    context.no_search_before = 0;
    header->version = 1;
    header->signature[0] = 'O';
    assert_false(process_context_update(&context, &set));
    assert_int_equal(context.address, 0);
    context.no_search_before = 0;
    header->version = 2;
    header->published_nano = 0;
    assert_false(process_context_update(&context, &set));
    header->published_nano = 9;
    assert_true(process_context_update(&context, &set));
    assert_string_equal(text_in(&set, "k"), "v");
    withdraw(header);
    attributes_clear(&set);
}

/* Finds a context that has moved, even before the next search is due. If a search has found none,
 * no further search comes before its time. */
static void a_moved_context_is_found(void **state) {
    (void)state;
    struct process_context context = {.log = &quiet};
    struct attribute_set set = {.count = 0};
    struct header *const first = publish(message_with("k", "first"));
    assert_true(process_context_update(&context, &set));
    struct header *const second = publish(message_with("k", "second"));
    withdraw(first);
    context.no_search_before = UINT64_MAX;
    assert_true(process_context_update(&context, &set));
    assert_string_equal(text_in(&set, "k"), "second");
    withdraw(second);
    assert_true(process_context_update(&context, &set));
    context.no_search_before = UINT64_MAX;
    struct header *const third = publish(message_with("k", "third"));
    assert_false(process_context_update(&context, &set));
    withdraw(third);
}

static void names_of_keys_are_there_while_they_are_published(void **state) {
    (void)state;
    static const char *const first[] = {"zero"};
    static const char *const more[] = {"zero", "one"};
    struct process_context context = {.log = &quiet};
    struct attribute_set set = {.count = 0};
    struct header *const header = publish(message_of_names("tls_v1", first, 1));
    (void)process_context_update(&context, &set);
    assert_string_equal(context.names.of[0], "zero");
    assert_null(context.names.of[1]);
    header->payload_size = (uint32_t)message_of_names("tls_v1", more, 2)->size;
    header->published_nano = 2;
    (void)process_context_update(&context, &set);
    assert_string_equal(context.names.of[1], "one");
    withdraw(header);
    (void)process_context_update(&context, &set);
    assert_null(context.names.of[0]);
    process_context_clear(&context);
}

/* Expects a context, as for a thread that has keys by index: one search follows at once, and no
 * other before its time until a context was found. */
static void an_expected_context_is_searched_for_once(void **state) {
    (void)state;
    struct process_context context = {.log = &quiet, .no_search_before = UINT64_MAX};
    struct attribute_set set = {.count = 0};
    process_context_expect(&context);
    (void)process_context_update(&context, &set);
    assert_int_not_equal(context.no_search_before, UINT64_MAX);

    context.no_search_before = UINT64_MAX;
    struct header *header = publish(message_with("k", "v"));
    process_context_expect(&context);
    assert_false(process_context_update(&context, &set));
    context.no_search_before = 0;
    assert_true(process_context_update(&context, &set));
    withdraw(header);
    assert_true(process_context_update(&context, &set));

    context.no_search_before = UINT64_MAX; /* a context was found since the last search, so another
                                            * may follow */
    header = publish(message_with("k", "v"));
    process_context_expect(&context);
    assert_true(process_context_update(&context, &set));
    withdraw(header);
    process_context_clear(&context);
    attributes_clear(&set);
}

/* Describes a publisher that writes all the time. Every text repeats one letter, the same in all
 * texts. */
struct writer {
    struct header *header;
    struct message *message;
    bool ended;
};

static void *write_always(void *arg) {
    struct writer *const writer = arg;
    uint8_t *const bytes = writer->message->bytes;
    char letter = 'x'; /* long_text() begins with it */
    for (uint64_t time = 2; !__atomic_load_n(&writer->ended, __ATOMIC_ACQUIRE); time++) {
        const char next = letter == 'x' ? 'y' : 'x';
        __atomic_store_n(&writer->header->published_nano, 0, __ATOMIC_SEQ_CST);
        for (size_t i = 0; i < writer->message->size; i++)
            if (bytes[i] == (uint8_t)letter)
                bytes[i] = (uint8_t)next;
        letter = next;
        __atomic_store_n(&writer->header->published_nano, time, __ATOMIC_SEQ_CST);
        sched_yield();
    }
    return NULL;
}

static void a_half_written_context_is_not_taken(void **state) {
    (void)state;
    enum { TEXTS = 8, READS = 300 };
    static const char *const keys[TEXTS] = {"1", "2", "3", "4", "5", "6", "7", "8"};
    struct process_context context = {.log = &quiet};
    struct attribute_set set = {.count = 0};
    char *const text = long_text(CONTEXT_TEXT_BYTES);
    AnyValue values[TEXTS];
    for (size_t i = 0; i < TEXTS; i++)
        values[i] = text_value(text);
    struct message *const message = message_of(keys, values, TEXTS);
    struct writer writer = {publish(message), message, false};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, write_always, &writer), 0);
    for (int reads = 0; reads < READS; reads += process_context_update(&context, &set)) {
        const char *const first = text_in(&set, "1");
        for (size_t i = 0; first && i < TEXTS; i++)
            assert_string_equal(text_in(&set, keys[i]), first);
        assert_true(!first || strspn(first, "x") % CONTEXT_TEXT_BYTES == 0);
    }
    __atomic_store_n(&writer.ended, true, __ATOMIC_RELEASE);
    pthread_join(thread, NULL);
    withdraw(writer.header);
    attributes_clear(&set);
    free(text);
}

static void garbage_is_logged_once(void **state) {
    (void)state;
    static uint8_t rubbish[] = {0xff, 0xff, 0xff};
    char path[] = "/tmp/test_context.XXXXXX";
    char told[4096];
    close(mkstemp(path));
    const struct log log = {.level = LOG_DEBUG, .file = path};
    struct process_context context = {.log = &log};
    struct attribute_set set = {.count = 0};
    struct message *const good = message_with("k", "v");
    const struct header wrong[] = {
        {.payload_size = sizeof rubbish, .payload = rubbish},
        {.payload_size = 8, .payload = NULL},
        {.payload_size = 8, .payload = (const void *)8},
        {.payload_size = UINT32_MAX, .payload = good->bytes},
        {.payload_size = CONTEXT_PAYLOAD_BYTES + 1, .payload = good->bytes},
        {.payload_size = 8, .payload = (const void *)UINTPTR_MAX},
    };
    struct header *const header = publish(good);
    for (uint64_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        header->payload = good->bytes;
        header->payload_size = (uint32_t)good->size;
        header->published_nano = 2 * i + 1;
        assert_true(process_context_update(&context, &set));
        assert_string_equal(text_in(&set, "k"), "v");
        header->payload = wrong[i].payload;
        header->payload_size = wrong[i].payload_size;
        header->published_nano = 2 * i + 2;
        assert_true(process_context_update(&context, &set)); /* what was published before is gone */
        assert_int_equal(set.count, 0);
        assert_false(process_context_update(&context, &set));
    }
    withdraw(header);
    FILE *const file = fopen(path, "r");
    told[fread(told, 1, sizeof told - 1, file)] = 0;
    fclose(file);
    unlink(path);
    const char *const line =
        strstr(told, "OTEL_CTX) cannot be read; going on without its attributes\n");
    assert_non_null(line);
    assert_null(strstr(line + 1, "OTEL_CTX"));
}

/* --- and into the resource --- */

static void the_operator_wins_over_the_application(void **state) {
    (void)state;
    static const char *const environment[] = {
        "OTEL_RESOURCE_ATTRIBUTES=a=operator,service.namespace=operator",
        "OTEL_SERVICE_NAME=operators-name", "OTEL_PROFILER_REDACT=/secret/*", NULL};
    static const char *const keys[] = {"service.name",
                                       "a",
                                       "b",
                                       "telemetry.sdk.name",
                                       "host.name",
                                       "process.command_args",
                                       "process.command_line",
                                       "process.executable.path"};
    AnyValue values[8];
    for (size_t i = 0; i < 8; i++)
        values[i] = text_value("application");
    values[7] = text_value("/secret/program");
    const struct capture_api api = fake_capture(environment);
    struct resource *const resource = resource_open(api.config, api.log, "");
    char *const host = strdup(resource_find(resource, "host.name"));
    struct header *const header = publish(message_of(keys, values, 8));
    resource_update(resource);
    assert_string_equal(resource_find(resource, "service.name"), "operators-name");
    assert_string_equal(resource_find(resource, "a"), "operator");
    assert_string_equal(resource_find(resource, "b"), "application");
    assert_string_equal(resource_find(resource, "telemetry.sdk.name"), "libotelprof");
    assert_string_equal(resource_find(resource, "host.name"), "application");
    assert_null(resource_find(resource, "process.command_args"));
    assert_null(resource_find(resource, "process.command_line"));
    assert_string_equal(resource_find(resource, "process.executable.path"), "[REDACTED]");
    withdraw(header);
    resource_update(resource);
    assert_null(resource_find(resource, "b"));
    assert_string_equal(resource_find(resource, "host.name"), host);
    free(host);
    resource_close(resource);
}

/* Sets attributes to an empty value, as an operator may: a detected value may have to stay
 * private. */
static void the_operator_may_leave_a_value_empty(void **state) {
    (void)state;
    static const char *const environment[] = {
        "OTEL_RESOURCE_ATTRIBUTES=a=,host.name=,process.executable.name= ,service.name=", NULL};
    const struct capture_api api = fake_capture(environment);
    struct resource *const resource = resource_open(api.config, api.log, "");
    assert_string_equal(resource_find(resource, "a"), "");
    assert_string_equal(resource_find(resource, "host.name"), "");
    assert_string_equal(resource_find(resource, "service.name"), "unknown_service");
    resource_close(resource);
}

static void redacted_values_stay_hidden(void **state) {
    (void)state;
    static const char *const environment[] = {"OTEL_PROFILER_REDACT=/secret/*", NULL};
    static const char *const keys[] = {"process.executable.name", "process.executable.path"};
    AnyValue values[] = {text_value("program"), text_value("program")};
    const struct capture_api api = fake_capture(environment);
    struct header *const header = publish(message_of(keys, values, 2));
    struct resource *hidden = resource_open(api.config, api.log, "/secret/program");
    struct resource *shown = resource_open(api.config, api.log, "/other/program");
    resource_update(hidden);
    resource_update(shown);
    for (size_t i = 0; i < 2; i++) {
        assert_string_equal(resource_find(hidden, keys[i]), "[REDACTED]");
        assert_string_equal(resource_find(shown, keys[i]), "program");
    }
    withdraw(header);
    resource_close(hidden);
    resource_close(shown);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mappings_are_known_by_their_names),
        cmocka_unit_test(a_published_context_is_followed),
        cmocka_unit_test(an_unfinished_context_is_awaited),
        cmocka_unit_test(a_moved_context_is_found),
        cmocka_unit_test(names_of_keys_are_there_while_they_are_published),
        cmocka_unit_test(an_expected_context_is_searched_for_once),
        cmocka_unit_test(a_half_written_context_is_not_taken),
        cmocka_unit_test(garbage_is_logged_once),
        cmocka_unit_test(the_operator_wins_over_the_application),
        cmocka_unit_test(the_operator_may_leave_a_value_empty),
        cmocka_unit_test(redacted_values_stay_hidden),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
