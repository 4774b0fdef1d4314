/* Tests that the profiler enters the loader only if no other thread is inside, so that it waits for
 * neither of the loader's two locks. */
#include "unit.h"

#include "symbols/loader_state.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/syscall.h>
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

struct entering {
    _Atomic bool is_begun;
    _Atomic bool is_done;
    _Atomic int tid;
    bool got_in; /* during the visit */
};

/* Asks the loader for an object, for which it takes its main lock. */
static void *enters(void *arg) {
    struct entering *const entering = arg;
    Dl_info found;
    atomic_store(&entering->tid, gettid());
    atomic_store(&entering->is_begun, true);
    (void)dladdr((void *)enters, &found);
    atomic_store(&entering->is_done, true);
    return NULL;
}

/* Returns true if the thread sleeps in futex(). */
static bool waits_for_a_lock(int tid) {
    char path[64];
    int number = -1;
    snprintf(path, sizeof path, "/proc/self/task/%d/syscall", tid);
    FILE *const file = fopen(path, "r");
    assert_non_null(file);
    const bool is_read = fscanf(file, "%d", &number) == 1; /* "running": it does not sleep */
    fclose(file);
    return is_read && number == SYS_futex;
}

static int lets_another_thread_enter(struct dl_phdr_info *object, size_t size, void *arg) {
    struct entering *const entering = arg;
    static pthread_t thread;
    (void)object;
    (void)size;
    assert_int_equal(pthread_create(&thread, NULL, enters, entering), 0);
    while (!atomic_load(&entering->is_begun) ||
           (!atomic_load(&entering->is_done) && !waits_for_a_lock(atomic_load(&entering->tid))))
        usleep(1000);
    entering->got_in = atomic_load(&entering->is_done);
    assert_int_equal(pthread_detach(thread), 0);
    return 1;
}

static void a_visit_keeps_other_threads_out_of_the_loader(void **state) {
    static struct entering entering;
    (void)state;
    errno = EDOM;
    loader_state_visit(lets_another_thread_enter, &entering);
    assert_int_equal(errno, EDOM);
    assert_false(entering.got_in);
    while (!atomic_load(&entering.is_done) || loader_state_user())
        usleep(1000);
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
        cmocka_unit_test(a_visit_keeps_other_threads_out_of_the_loader),
    };
    return cmocka_run_group_tests(tests, start, NULL);
}
