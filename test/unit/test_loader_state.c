/* Tests that the profiler enters the loader only if no other thread is inside, so that it waits for
 * neither of the loader's two locks. */
#include "unit.h"

#include "symbols/loader_state.h"

#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

static _Atomic bool is_inside;
static _Atomic bool may_leave;

static int stays_inside(struct dl_phdr_info *object, size_t size, void *unused) {
    (void)object;
    (void)size;
    (void)unused;
    atomic_store(&is_inside, true);
    while (!atomic_load(&may_leave))
        usleep(1000);
    return 1;
}

static void *iterates(void *unused) {
    dl_iterate_phdr(stays_inside, NULL);
    return unused;
}

static int does_nothing(struct dl_phdr_info *object, size_t size, void *unused) {
    (void)object;
    (void)size;
    (void)unused;
    return 0;
}

/* A callback may call dladdr(), which waits for the main lock. */
static void a_callback_of_the_list_keeps_the_profiler_out(void **state) {
    pthread_t thread;
    (void)state;
    atomic_store(&is_inside, false);
    atomic_store(&may_leave, false);
    assert_int_equal(pthread_create(&thread, NULL, iterates, NULL), 0);
    while (!atomic_load(&is_inside))
        usleep(1000);
    const bool entered = loader_state_try_enter();
    if (entered)
        loader_state_leave();
    atomic_store(&may_leave, true);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_false(entered);
}

static void a_free_loader_is_entered_and_left(void **state) {
    (void)state;
    for (int i = 0; i < 2; i++) {
        assert_true(loader_state_try_enter());
        assert_true(loader_state_is_used_by((uint32_t)gettid()));
        dl_iterate_phdr(does_nothing, NULL);
        loader_state_leave();
        assert_int_equal(loader_state_user(), 0);
    }
}

static int start(void **state) {
    (void)state;
    loader_state_learn();
    return loader_state_is_known() ? 0 : -1;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_callback_of_the_list_keeps_the_profiler_out),
        cmocka_unit_test(a_free_loader_is_entered_and_left),
    };
    return cmocka_run_group_tests(tests, start, NULL);
}
