/* Tests the context of another thread: read whole or not at all, whatever that thread does. */
#include "unit.h"

#include "arch_machine.h"
#include "context/program_context.h"
#include "record/record.h"

#include <pthread.h>
#include <semaphore.h>
#include <sys/mman.h>

enum { LOOKS = 20000 };

static struct modules modules;
static struct context_reader reader = {.sources = CONTEXT_ALL, .modules = &modules};
static __thread const uint8_t *published; /* stands for otel_thread_ctx_v1 */
static struct sample_context context;

static struct thread {
    struct program_context *own;
    _Atomic uintptr_t pointer;
    sem_t is_there;
    sem_t may_go;
    _Atomic bool is_over;
} other;

static void start(pthread_t *thread, void *(*routine)(void *)) {
    const struct thread_variable variable = {
        .source = CONTEXT_THREAD, .offset = (intptr_t)((uintptr_t)&published - thread_pointer())};
    other.own = program_context_make(1);
    other.is_over = false;
    thread_variables_set(&reader.variables, &variable, 1);
    assert_int_equal(sem_init(&other.is_there, 0, 0), 0);
    assert_int_equal(sem_init(&other.may_go, 0, 0), 0);
    assert_int_equal(pthread_create(thread, NULL, routine, NULL), 0);
    assert_int_equal(sem_wait(&other.is_there), 0);
}

static void end(pthread_t thread) {
    other.is_over = true;
    assert_int_equal(sem_post(&other.may_go), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

static enum context_outcome look(const struct program_context *own) {
    memset(&context, 0xa5, sizeof context);
    return context_read_of(&reader, other.pointer, own, &context);
}

static void assert_label(const char *key, const char *value) {
    struct context_attribute label = {.key = NULL};
    uint32_t at = 0;
    assert_true(context_next_attribute(&context, &at, &label));
    assert_non_null(label.key);
    assert_int_equal(label.key_bytes, strlen(key));
    assert_memory_equal(label.key, key, label.key_bytes);
    assert_int_equal(label.value_bytes, strlen(value));
    assert_memory_equal(label.value, value, label.value_bytes);
    assert_int_equal(at, context.attribute_bytes);
}

/* --- a thread that waits --- */

static const uint8_t record[28] = "trace of a record" /* trace and span */ "span id";

static void *wait_with_contexts(void *unused) {
    static uint8_t valid[28];
    memcpy(valid, record, sizeof valid);
    valid[24] = 1;
    published = valid;
    other.pointer = thread_pointer();
    sem_post(&other.is_there);
    sem_wait(&other.may_go);
    return unused;
}

static void the_context_of_a_waiting_thread_is_read(void **state) {
    pthread_t thread;
    (void)state;
    start(&thread, wait_with_contexts);
    assert_int_equal(look(NULL), CONTEXT_READ);
    assert_memory_equal(context.trace_id, record, TRACE_ID_BYTES);
    assert_int_equal(context.attribute_bytes, 0);
    program_context_push(other.own, "route", "/cart");
    assert_int_equal(look(other.own), CONTEXT_READ);
    assert_memory_equal(context.trace_id, record, TRACE_ID_BYTES);
    assert_label("route", "/cart");
    end(thread);
}

static void a_programs_own_context_goes_first(void **state) {
    static const uint8_t trace[] = "its own trace id";
    pthread_t thread;
    (void)state;
    start(&thread, wait_with_contexts);
    program_context_set_span(other.own, trace, trace);
    assert_int_equal(look(other.own), CONTEXT_READ);
    assert_memory_equal(context.trace_id, trace, TRACE_ID_BYTES);
    end(thread);
}

static void a_thread_that_is_gone_does_no_harm(void **state) {
    const size_t size = (size_t)1 << 20; /* memory beside it may be mapped */
    uint8_t *const gone = mmap(NULL, size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    (void)state;
    assert_ptr_not_equal(gone, MAP_FAILED);
    other.pointer = (uintptr_t)gone + size / 2;
    assert_int_equal(munmap(gone, size), 0);
    assert_int_equal(look(NULL), CONTEXT_WRONG);
}

/* --- a thread that runs --- */

static void fill(uint8_t bytes[static 24], uint8_t with) {
    memset(bytes, with, 24);
}

static void *change_often(void *unused) {
    static uint8_t records[2][28];
    other.pointer = thread_pointer();
    sem_post(&other.is_there);
    for (uint32_t i = 1; !other.is_over; i++) {
        uint8_t *const at = records[i / 16 % 2];
        uint8_t span[24];
        fill(span, (uint8_t)(1 + i % 200));
        program_context_set_span(other.own, i % 3 ? span : NULL, span + 16);
        at[24] = 0;
        atomic_thread_fence(memory_order_seq_cst);
        fill(at, (uint8_t)(1 + i % 200));
        atomic_thread_fence(memory_order_seq_cst);
        at[24] = 1;
        published = at;
    }
    return unused;
}

static void no_mixture_of_two_spans_is_read(void **state) {
    pthread_t thread;
    (void)state;
    start(&thread, change_often);
    for (int i = 0; i < LOOKS; i++) {
        const enum context_outcome outcome = look(i % 2 ? other.own : NULL);
        if (outcome != CONTEXT_READ)
            continue;
        for (int byte = 1; byte < TRACE_ID_BYTES; byte++)
            assert_int_equal(context.trace_id[byte], context.trace_id[0]);
        for (int byte = 0; byte < SPAN_ID_BYTES; byte++)
            assert_int_equal(context.span_id[byte], context.trace_id[0]);
    }
    end(thread);
}

static void *push_and_pop(void *unused) {
    static const char *const values[] = {"a", "bb", "cccccccccccccccc", ""};
    sem_post(&other.is_there);
    for (uint32_t i = 0; !other.is_over; i++) {
        const char *const value = values[i % 4];
        const uint32_t depth = program_context_push(other.own, value, value);
        program_context_push(other.own, "k", value);
        program_context_pop_to(other.own, depth);
    }
    return unused;
}

/* Reads while the thread pushes and pops labels. Each key is "k" or equals its value, so a mixture
 * of two labels would show. A label with an empty key takes no place. */
static void no_half_of_a_label_is_read(void **state) {
    struct context_attribute label = {.key = NULL};
    pthread_t thread;
    (void)state;
    start(&thread, push_and_pop);
    other.pointer = thread_pointer(); /* the thread publishes nothing */
    for (int i = 0; i < LOOKS; i++) {
        if (look(other.own) != CONTEXT_READ)
            continue;
        for (uint32_t at = 0; context_next_attribute(&context, &at, &label);) {
            assert_non_null(label.key);
            if (label.key[0] == 'k')
                continue;
            assert_int_equal(label.key_bytes, label.value_bytes);
            assert_memory_equal(label.key, label.value, label.key_bytes);
        }
    }
    end(thread);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_context_of_a_waiting_thread_is_read),
        cmocka_unit_test(a_programs_own_context_goes_first),
        cmocka_unit_test(a_thread_that_is_gone_does_no_harm),
        cmocka_unit_test(no_mixture_of_two_spans_is_read),
        cmocka_unit_test(no_half_of_a_label_is_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
