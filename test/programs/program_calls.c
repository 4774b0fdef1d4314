// flags: -rdynamic
/* Calls otelprof.h as its argument says. A function that burns CPU time is named after the context
 * that its samples must carry. */
#define _GNU_SOURCE
#include "../../shim/otelprof.h"

#include "cpu_work.h"
#include "flush_timeout.h"
#include "forked.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 4, MS = 200 };

static const uint8_t trace[16] = "trace of program";
static const uint8_t span_1[8] = "span   1";
static const uint8_t span_2[8] = "span   2";

BURNER(in_none, MS)
BURNER(in_span_1, MS)
BURNER(in_span_2, MS)
BURNER(in_span_1_again, MS)
BURNER(in_label, MS)
BURNER(in_too_many, MS)

static void inner(void) {
    OTELPROF_SPAN_SCOPE(trace, span_2);
    OTELPROF_LABEL_SCOPE("tenant", "inner");
    OTELPROF_LABEL_SCOPE("route", "/");
    in_span_2();
}

static void scopes(void) {
    {
        OTELPROF_SPAN_SCOPE(trace, span_1);
        OTELPROF_LABEL_SCOPE("tenant", "outer");
        in_span_1();
        inner();
        in_span_1_again();
    }
    in_none();
    OTELPROF_LABEL_SCOPE("tenant", "alone");
    in_label();
}

/* Pushes more labels than a thread may have; the later half has the keys of the first. Then it pops
 * all but the first. */
static void too_many(void) {
    char key[8];
    for (int i = 0; i < 40; i++) {
        snprintf(key, sizeof key, "k%d", i % 20);
        otelprof_label_push(key, i < 20 ? "old" : "new");
    }
    in_too_many();
    otelprof_label_pop_to(1);
    in_label();
}

/* --- beside another source (OTEP 4947), whose record has a span, and no attributes --- */

static const struct __attribute__((packed)) {
    uint8_t trace_id[16];
    uint8_t span_id[8];
    uint8_t valid;
    uint8_t trace_flags;
    uint16_t attribute_bytes;
} published = {"another trace  ", "span  9", 1, 0, 0};

extern __thread const void *volatile otel_thread_ctx_v1;
__thread const void *volatile otel_thread_ctx_v1;

static void beside(void) {
    otel_thread_ctx_v1 = &published;
    in_none(); /* long enough for the profiler to find the variable */
    OTELPROF_LABEL_SCOPE("tenant", "own");
    in_label();
    OTELPROF_SPAN_SCOPE(trace, span_1);
    in_span_1();
}

/* --- threads --- */

NOIPA static void in_thread(uint64_t until) {
    WORK_UNTIL(until);
}

static void *thread_main(void *number) {
    const uint8_t own[8] = {'t', (uint8_t)(uintptr_t)number, 0, 0, 0, 0, 0, 1};
    char name[16];
    if (!number) {
        in_none();
        return NULL;
    }
    snprintf(name, sizeof name, "worker-%u", (unsigned)(uintptr_t)number);
    pthread_setname_np(pthread_self(), name);
    otelprof_span_set(trace, own);
    otelprof_label_push("worker", name); /* the thread ends with both set */
    in_thread(MS * NS_PER_MS);
    return NULL;
}

static void threads(void) {
    pthread_t ids[THREADS];
    for (uintptr_t i = 0; i < THREADS; i++)
        pthread_create(&ids[i], NULL, thread_main, (void *)(i + 1));
    for (int i = 0; i < THREADS; i++)
        pthread_join(ids[i], NULL);
    for (int i = 0; i < THREADS; i++) { /* other threads take their places */
        pthread_create(&ids[i], NULL, thread_main, NULL);
        pthread_join(ids[i], NULL);
    }
}

/* --- processes --- */

static void *fork_in_thread(void *unused) {
    (void)unused;
    otelprof_span_set(trace, span_1);
    otelprof_label_push("tenant", "parent");
    if (fork_profiled() == 0) {
        in_span_1();
        otelprof_span_set(trace, span_2);
        otelprof_label_pop();
        in_span_2();
        otelprof_span_clear();
        in_none();
        exit(0);
    }
    wait(NULL);
    in_span_1_again();
    return NULL;
}

/* Has a context on another thread, which does not exist in the child. */
static void fork_with_context(void) {
    pthread_t id;
    OTELPROF_LABEL_SCOPE("tenant", "main");
    pthread_create(&id, NULL, fork_in_thread, NULL);
    pthread_join(id, NULL);
}

/* --- handlers --- */

/* Lasts longer than a kernel's tick, on which signals and samples come. */
NOIPA static void in_handler(void) {
    WORK_FOR(12 * NS_PER_MS);
}

static void on_signal(int number) {
    (void)number;
    OTELPROF_SPAN_SCOPE(trace, span_2);
    OTELPROF_LABEL_SCOPE("tenant", "handler");
    in_handler();
}

NOIPA static void in_change(uint64_t end) {
    while (cpu_now() < end)
        for (int i = 0; i < 1000; i++) {
            OTELPROF_SPAN_SCOPE(trace, span_1);
            OTELPROF_LABEL_SCOPE("tenant", "program");
            otelprof_span_set(trace, span_1);
        }
}

static void handler(void) {
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGALRM};
    const struct itimerspec often = {{0, 30 * NS_PER_MS}, {0, 30 * NS_PER_MS}};
    timer_t timer;
    signal(SIGALRM, on_signal);
    timer_create(CLOCK_THREAD_CPUTIME_ID, &event, &timer); /* the loop goes on, whatever the load */
    timer_settime(timer, 0, &often, NULL);
    in_change(cpu_now() + 1000 * NS_PER_MS);
    timer_delete(timer);
    in_none();
}

/* --- control --- */

BURNER(while_stopped, MS)
BURNER(while_started, MS)

static void stop(void) {
    const int stopped = otelprof_stop();
    while_stopped();
    const int started = otelprof_start();
    while_started();
    printf("%d %d\n", stopped, started);
}

static void resource(void) {
    static const struct otelprof_attribute first[] = {{"service.name", "first"}};
    static const struct otelprof_attribute second[] = {{"service.name", "shop"},
                                                       {"deployment.tier", "front"}};
    static char long_text[10000];
    memset(long_text, 'x', sizeof long_text - 1);
    const struct otelprof_attribute too_long[] = {{"service.name", long_text}};
    printf("%d", otelprof_resource_publish(first, 1));
    printf(" %d", otelprof_resource_publish(second, 2));
    printf(" %d\n", otelprof_resource_publish(too_long, 1));
    in_none();
}

static void counters(void) {
    struct otelprof_counters all = {.size = sizeof all};
    struct {
        size_t size;
        uint64_t samples, beyond;
    } fewer = {.size = offsetof(struct otelprof_counters, linked_samples), .beyond = 7};
    {
        OTELPROF_SPAN_SCOPE(trace, span_1);
        in_span_1();
    }
    in_none();
    const int flushed = otelprof_flush(FLUSH_TIMEOUT_MS);
    const int flushed_again = otelprof_flush(FLUSH_TIMEOUT_MS);
    const int read = otelprof_counters_read(&all);
    otelprof_counters_read((struct otelprof_counters *)(void *)&fewer);
    printf(
        "{\"flushed\": [%d, %d], \"read\": %d, \"samples\": %ju, \"linked\": %ju, \"lost\": %ju, "
        "\"exports\": %ju, \"failed\": %ju, \"cpu\": %ju, \"fewer\": %ju, \"beyond\": %ju}\n",
        flushed, flushed_again, read, (uintmax_t)all.samples, (uintmax_t)all.linked_samples,
        (uintmax_t)all.lost_samples, (uintmax_t)all.exports, (uintmax_t)all.failed_exports,
        (uintmax_t)all.cpu_nano, (uintmax_t)fewer.samples, (uintmax_t)fewer.beyond);
}

/* --- calls before, after, and in between --- */

static void call_all(void) {
    struct otelprof_context context;
    struct otelprof_counters all = {.size = sizeof all};
    struct otelprof_span span;
    (void)otelprof_version();
    otelprof_span_set(trace, span_1);
    otelprof_span_set(NULL, span_1);
    (void)otelprof_span_get(&span);
    otelprof_label_pop();
    otelprof_label_push(NULL, NULL);
    otelprof_label_push("k", "v");
    memset(&context, 'x', sizeof context);
    otelprof_context_save(&context);
    if (otelprof_version() && memchr(context.opaque, 'x', 8))
        puts("nothing was saved");
    otelprof_context_swap(&context);
    otelprof_context_restore(&context);
    otelprof_context_swap(NULL);
    otelprof_label_pop_to(0);
    otelprof_span_clear();
    (void)otelprof_counters_read(&all);
    (void)otelprof_counters_read(NULL);
    (void)otelprof_flush(0);
    (void)otelprof_start();
}

__attribute__((constructor(101))) static void before_main(void) {
    call_all();
}

__attribute__((destructor(101))) static void after_main(void) {
    call_all();
}

static void everywhere(void) {
    call_all();
    const pid_t child = vfork();
    if (child == 0)
        _exit(0);
    waitpid(child, NULL, 0);
    atexit(call_all);
    in_none();
}

int main(int count, char **arguments) {
    static const struct {
        const char *name;
        void (*run)(void);
    } parts[] = {{"scopes", scopes},          {"too_many", too_many}, {"threads", threads},
                 {"fork", fork_with_context}, {"handler", handler},   {"stop", stop},
                 {"resource", resource},      {"beside", beside},     {"counters", counters},
                 {"everywhere", everywhere}};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (count == 2 && strcmp(parts[i].name, arguments[1]) == 0) {
            parts[i].run();
            return 0;
        }
    return 2;
}
