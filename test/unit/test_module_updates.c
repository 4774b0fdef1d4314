/* Tests that a snapshot that is updated in place equals one that a full comparison makes, whatever
 * objects are loaded, unloaded and replaced. */
#include "unit.h"

#include "symbols/loader_state.h"
#include "unwind/modules.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

enum { LIBRARIES = 6, STEPS = 3000 };

/* Lists libraries of glibc that the test program does not need at its start. Most have the same
 * size, so that one is often loaded at the address that another had. */
static const char *const names[LIBRARIES] = {"ISO8859-2", "ISO8859-3", "ISO8859-4",
                                             "ISO8859-5", "ISO8859-7", "ISO8859-1"};

static struct modules updated;
static struct modules compared; /* as on a C library before 2.35: is never updated in place */
static void *open_libraries[LIBRARIES];
static void *elsewhere; /* a library in a namespace of its own */

static void *load(unsigned i, bool apart) {
    char path[100];
    snprintf(path, sizeof path, "/usr/lib/x86_64-linux-gnu/gconv/%s.so", names[i]);
    if (access(path, R_OK) != 0)
        skip();
    void *const library =
        apart ? dlmopen(LM_ID_NEWLM, path, RTLD_NOW) : dlopen(path, RTLD_NOW | RTLD_LOCAL);
    assert_non_null(library);
    return library;
}

static void change(unsigned i) {
    if (!open_libraries[i]) {
        open_libraries[i] = load(i, false);
        return;
    }
    dlclose(open_libraries[i]);
    open_libraries[i] = NULL;
}

static void change_elsewhere(void) {
    if (!elsewhere) {
        elsewhere = load(0, true);
        return;
    }
    dlclose(elsewhere);
    elsewhere = NULL;
}

static struct module_snapshot *current(struct modules *modules) {
    return atomic_load(&modules->current);
}

/* --- what must be equal --- */

static void assert_same_module(const struct harvest_module *a, const struct harvest_module *b) {
    assert_string_equal(a->path, b->path);
    assert_true(module_is_same(a, b));
    assert_int_equal(a->text_file_offset, b->text_file_offset);
    assert_int_equal(a->first_interval, b->first_interval);
    assert_int_equal(a->last_interval, b->last_interval);
    assert_int_equal(a->unloaded, b->unloaded);
}

static void assert_same(void) {
    const struct module_snapshot *const a = current(&updated);
    const struct module_snapshot *const b = current(&compared);
    assert_int_equal(a->count, b->count);
    assert_int_equal(a->adds, b->adds);
    assert_int_equal(a->subs, b->subs);
    assert_int_equal(modules_interval(&updated), modules_interval(&compared));
    for (size_t i = 0; i < a->count; i++)
        assert_same_module(&a->modules[i], &b->modules[i]);
    assert_int_equal(updated.unloaded.added, compared.unloaded.added);
    assert_int_equal(updated.unsure_interval, compared.unsure_interval);
    for (size_t i = 0; i < unloaded_modules_count(&updated.unloaded); i++)
        assert_same_module(unloaded_modules_at(&updated.unloaded, i),
                           unloaded_modules_at(&compared.unloaded, i));
}

static void look(bool before_unload) {
    if (before_unload) {
        (void)modules_refresh_before_unload(&updated);
        (void)modules_refresh_before_unload(&compared);
    } else {
        assert_int_equal(modules_refresh(&updated), modules_refresh(&compared));
    }
    assert_same();
}

static void harvest(void) {
    bool unloaded;
    (void)modules_pin(&updated, &unloaded);
    (void)modules_pin(&compared, &unloaded);
    modules_close_interval(&updated);
    modules_close_interval(&compared);
    assert_same();
}

static int start(void **state) {
    (void)state;
    memset(&updated, 0, sizeof updated);
    memset(&compared, 0, sizeof compared);
    if (!modules_start(&updated) || !modules_start(&compared))
        return -1;
    if (!updated.find_object) /* an older C library: there is one way only */
        return -1;
    compared.find_object = NULL;
    return 0;
}

static int end(void **state) {
    (void)state;
    for (unsigned i = 0; i < LIBRARIES; i++)
        if (open_libraries[i])
            change(i);
    if (elsewhere)
        change_elsewhere();
    return 0;
}

/* --- the tests --- */

static void any_order_of_events_gives_what_a_full_comparison_gives(void **state) {
    uint64_t random = 88172645463325252;
    (void)state;
    for (unsigned step = 0; step < STEPS; step++) {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        const unsigned what = random >> 32 & 63;
        if (what == 63)
            harvest();
        else if (what == 62)
            change_elsewhere();
        else if (what >= 30)
            look(what & 1);
        else
            change(what % LIBRARIES);
    }
}

static const struct harvest_module *find(const char *name) {
    const struct module_snapshot *const snapshot = current(&updated);
    for (size_t i = 0; i < snapshot->count; i++)
        if (strstr(snapshot->modules[i].path, name))
            return &snapshot->modules[i];
    return NULL;
}

/* Between two looks, unloads one library and loads another at its place. */
static void another_at_the_same_address_is_another(void **state) {
    (void)state;
    change(0);
    look(false);
    assert_non_null(find("ISO8859-2.so"));
    const uint64_t address = find("ISO8859-2.so")->start;
    const uint64_t seen = updated.seen_interval;
    change(0);
    change(1);
    look(false);
    assert_null(find("ISO8859-2.so"));
    const struct harvest_module *const now = find("ISO8859-3.so");
    assert_non_null(now);
    if (now->start != address)
        skip();
    assert_int_equal(now->first_interval, seen); /* it may have come at once */
    const struct harvest_module *const gone = unloaded_modules_at(&updated.unloaded, 0);
    assert_non_null(strstr(gone->path, "ISO8859-2.so"));
    assert_int_equal(gone->start, address);
    assert_true(gone->last_interval < modules_interval(&updated));
}

/* A program that loads and unloads all the time costs no new snapshots, and no room. */
static void loading_and_unloading_takes_no_new_snapshot(void **state) {
    (void)state;
    change(5);
    (void)modules_refresh(&updated);
    const struct module_snapshot *const first = current(&updated);
    const size_t count = first->count;
    const char *const text = first->text;
    for (int i = 0; i < 1000; i++) {
        change(i % 5);
        modules_refresh_before_load(&updated);
        (void)modules_refresh_before_unload(&updated);
        assert_int_equal(current(&updated)->count, count + 1);
        change(i % 5);
        (void)modules_refresh(&updated);
        assert_ptr_equal(current(&updated), first);
        assert_int_equal(first->count, count);
        assert_ptr_equal(first->text, text);
    }
}

/* Changes the objects after a harvest has pinned the snapshot, which the helper and the visitors
 * read without a lock. */
static void the_snapshot_of_a_harvest_stays_as_it_is(void **state) {
    bool unloaded;
    (void)state;
    const struct module_snapshot *const pinned = modules_pin(&updated, &unloaded);
    const size_t count = pinned->count;
    change(0);
    (void)modules_refresh(&updated);
    assert_ptr_not_equal(current(&updated), pinned);
    change(0);
    (void)modules_refresh(&updated);
    assert_int_equal(pinned->count, count);
    assert_int_equal(current(&updated)->count, count);
    modules_close_interval(&updated);
}

/* In a child, the thread that was updating is not there to finish. */
static void a_child_forked_during_an_update_begins_anew(void **state) {
    (void)state;
    (void)modules_refresh(&updated);
    const size_t count = current(&updated)->count;
    updated.updating = true;
    current(&updated)->count -= 2;
    modules_after_fork(&updated, 0);
    (void)modules_refresh(&updated);
    assert_int_equal(current(&updated)->count, count);
    assert_false(updated.updating);
}

static atomic_int inside; /* the other thread is inside the loader */
static atomic_int early;  /* visits of the list during that time */

/* Replaces libc's function. */
int dl_iterate_phdr(int (*visit)(struct dl_phdr_info *, size_t, void *), void *data) {
    static int (*real)(int (*)(struct dl_phdr_info *, size_t, void *), void *);
    if (!real) {
        void *const next = dlsym(RTLD_NEXT, "dl_iterate_phdr");
        memcpy(&real, &next, sizeof real);
    }
    atomic_fetch_add(&early, atomic_load(&inside));
    return real(visit, data);
}

static void *stay_inside(void *unused) {
    assert_true(loader_state_try_enter());
    atomic_store(&inside, 1);
    usleep(20000);
    atomic_store(&inside, 0);
    loader_state_leave();
    return unused;
}

/* glibc's dl_iterate_phdr() may crash beside a dlopen() of a library with thread-local variables.
 */
static void no_look_meets_a_library_that_is_being_loaded(void **state) {
    bool unloaded;
    (void)state;
    loader_state_learn();
    if (!loader_state_is_known())
        skip();
    for (int i = 0; i < 2; i++) {
        pthread_t thread;
        pthread_create(&thread, NULL, stay_inside, NULL);
        while (!atomic_load(&inside))
            usleep(100);
        if (i == 0)
            (void)modules_refresh(&updated);
        else
            (void)modules_pin(&updated, &unloaded);
        assert_int_equal(atomic_load(&early), 0);
        pthread_join(thread, NULL);
    }
    modules_close_interval(&updated);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(another_at_the_same_address_is_another, start, end),
        cmocka_unit_test_setup_teardown(any_order_of_events_gives_what_a_full_comparison_gives,
                                        start, end),
        cmocka_unit_test_setup_teardown(loading_and_unloading_takes_no_new_snapshot, start, end),
        cmocka_unit_test_setup_teardown(the_snapshot_of_a_harvest_stays_as_it_is, start, end),
        cmocka_unit_test_setup_teardown(no_look_meets_a_library_that_is_being_loaded, start, end),
        cmocka_unit_test_setup_teardown(a_child_forked_during_an_update_begins_anew, start, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
