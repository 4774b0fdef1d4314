/* Tests that all tries of an export together have the time of OTEL_EXPORTER_OTLP_TIMEOUT. The clock
 * advances only while the sender waits for its next try. */
#include "unit.h"

#include "scripted_receiver.h"

#include "fake_syscall.h"

#include <curl/curl.h>
#include <dlfcn.h>

enum { MOST_TRIES = 64, TIMEOUT_MS = 10000 };

static const char busy[] = "HTTP/1.1 503 Later\r\nContent-Length: 0\r\n\r\n";

static struct {
    _Atomic uint64_t now_nano;    /* CLOCK_MONOTONIC */
    uint64_t at_ms[MOST_TRIES];   /* when each try began */
    uint64_t wait_ms[MOST_TRIES]; /* how long the sender waited for it */
    long timeout_ms[MOST_TRIES];  /* the time that libcurl got for it */
    int count;
} tries = {.now_nano = NANO_PER_SECOND};

static long fake_syscall(long number, const long a[6]) {
    if (number != SYS_clock_gettime || a[0] != CLOCK_MONOTONIC)
        return real_syscall(number, a);
    const uint64_t now = atomic_load(&tries.now_nano);
    *(struct timespec *)a[1] =
        (struct timespec){(time_t)(now / NANO_PER_SECOND), (long)(now % NANO_PER_SECOND)};
    return 0;
}

#undef curl_easy_setopt
CURLcode curl_easy_setopt(CURL *easy, CURLoption option, ...) {
    static CURLcode (*real)(CURL *, CURLoption, ...);
    va_list arguments;
    va_start(arguments, option);
    void *const value = va_arg(arguments, void *);
    va_end(arguments);
    if (!real) {
        void *const next = dlsym(RTLD_NEXT, "curl_easy_setopt");
        memcpy(&real, &next, sizeof real);
    }
    if (option == CURLOPT_TIMEOUT_MS) {
        assert_true(tries.count < MOST_TRIES);
        tries.at_ms[tries.count] = monotonic_nano() / NANO_PER_MILLI;
        tries.timeout_ms[tries.count++] = (long)(intptr_t)value;
    }
    return real(easy, option, value);
}

/* Steps until the export was tried so often. A wait for the next try passes at once. */
static void step_until_tried(struct sender *sender, int count) {
    while (tries.count < count || atomic_load(&server.requests) < count) {
        const uint64_t next = sender_step(sender, false);
        const uint64_t now = monotonic_nano();
        const uint64_t wait = next > now ? next - now : 0;
        if (wait < 100 * NANO_PER_MILLI)
            (void)fake_wait(next);
        else
            tries.wait_ms[tries.count] = wait / NANO_PER_MILLI;
        atomic_fetch_add(&tries.now_nano, wait);
    }
}

/* Each try gets what the former tries of the export, and the delays between them, have left of the
 * timeout. A try that would get less than it has waited for begins the export again. */
static void tries_and_delays_share_the_timeout(void **state) {
    (void)state;
    const char *const answers[] = {busy, NULL};
    enum { TRIES = 12 };
    start_server(answers);
    struct sender *const sender = open_with("", "", "", NULL);
    assert_int_equal(fake.config.timeout_ms, TIMEOUT_MS);
    add(sender, 5);
    step_until_tried(sender, TRIES);
    int exports = 0;
    for (int i = 0, first = 0; i < TRIES; i++) {
        if (tries.timeout_ms[i] == TIMEOUT_MS) {
            first = i;
            exports++;
            continue;
        }
        const uint64_t gone = tries.at_ms[i] - tries.at_ms[first];
        assert_in_range(tries.timeout_ms[i] + (long)gone, TIMEOUT_MS - 1, TIMEOUT_MS + 1);
        assert_true(tries.timeout_ms[i] >= (long)tries.wait_ms[i]);
    }
    assert_in_range(exports, 2, TRIES - 1);
    for (int i = 0; i < DROP_REASON_COUNT; i++) /* the export stays in the queue */
        assert_int_equal(fake.dropped[i], 0);
    sender_close(sender);
    stop_server();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tries_and_delays_share_the_timeout),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
