/* Tests that binding which could not be done stays expected. */
#include "unit.h"

#include "binding/call_binding.h"
#include "capture.h"
#include "cpu/sampler.h"
#include "symbols/loader_state.h"

#include <link.h>
#include <pthread.h>
#include <sched.h>

static uintptr_t leave_sites_alone(const struct call_site *site) {
    (void)site;
    return 0;
}

static void what_another_thread_is_binding_stays_expected(void **state) {
    struct call_binding binding = {.busy = true};
    (void)state;
    assert_false(call_binding_bind(&binding, leave_sites_alone));
    assert_true(atomic_load(&binding.expected));
    assert_int_equal(binding.adds, 0);
    atomic_store(&binding.busy, false);
    assert_true(call_binding_bind(&binding, leave_sites_alone));
    assert_false(atomic_load(&binding.expected));
    assert_int_not_equal(binding.adds, 0);
}

/* --- the loader's lock --- */

static _Atomic bool is_inside;
static _Atomic bool may_leave;

static int stay_inside(struct dl_phdr_info *object, size_t size, void *unused) {
    (void)object;
    (void)size;
    (void)unused;
    atomic_store(&is_inside, true);
    while (!atomic_load(&may_leave))
        sched_yield();
    return 1;
}

static void *iterate(void *unused) {
    dl_iterate_phdr(stay_inside, NULL);
    return unused;
}

static void what_the_loaders_lock_keeps_from_being_bound_stays_expected(void **state) {
    struct call_binding binding = {.expected = true};
    pthread_t thread;
    (void)state;
    assert_int_equal(pthread_create(&thread, NULL, iterate, NULL), 0);
    while (!atomic_load(&is_inside))
        sched_yield();
    const bool tried = call_binding_bind(&binding, leave_sites_alone);
    const bool is_expected = atomic_load(&binding.expected);
    atomic_store(&may_leave, true);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_true(tried);
    assert_true(is_expected);
    assert_int_equal(binding.adds, 0);
}

static void a_process_that_is_not_profiled_binds_nothing(void **state) {
    struct call_binding binding = {.expected = false};
    (void)state;
    atomic_store(&capture.armed, false);
    const bool tried = call_binding_bind(&binding, leave_sites_alone);
    atomic_store(&capture.armed, true);
    assert_false(tried);
    assert_false(atomic_load(&binding.expected));
    assert_int_equal(binding.adds, 0);
}

static int arm(void **state) {
    (void)state;
    loader_state_learn();
    sampler.armed = &capture.armed;
    atomic_store(&capture.armed, true);
    return loader_state_is_known() ? 0 : -1;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_another_thread_is_binding_stays_expected),
        cmocka_unit_test(what_the_loaders_lock_keeps_from_being_bound_stays_expected),
        cmocka_unit_test(a_process_that_is_not_profiled_binds_nothing),
    };
    return cmocka_run_group_tests(tests, arm, NULL);
}
