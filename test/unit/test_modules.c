/* Tests unwind tables of libraries that come and go: the objects of the start are fixed, and
 * nothing is unmapped under a reader. */
#include "unit.h"

#include "unwind/modules.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

static struct modules modules;

/* Names a library of glibc that the test program does not need at its start. */
static const char *const library_path = "/usr/lib/x86_64-linux-gnu/gconv/ISO8859-1.so";

static uintptr_t load(void **library) {
    *library = dlopen(library_path, RTLD_NOW);
    if (!*library)
        skip();
    const uintptr_t pc = (uintptr_t)dlsym(*library, "gconv");
    assert_true(pc != 0);
    return pc;
}

static atomic_int looks;
static atomic_int open_looks; /* scans of the loader's list during which a signal could have come */

/* Replaces libc's function, and calls it: checks that signals are blocked while the loader's list
 * is read under the lock. */
int dl_iterate_phdr(int (*visit)(struct dl_phdr_info *, size_t, void *), void *data) {
    int (*real)(int (*)(struct dl_phdr_info *, size_t, void *), void *);
    void *const next = dlsym(RTLD_NEXT, "dl_iterate_phdr");
    sigset_t mask;
    memcpy(&real, &next, sizeof real);
    pthread_sigmask(SIG_BLOCK, NULL, &mask);
    atomic_fetch_add(&looks, 1);
    atomic_fetch_add(&open_looks, !sigismember(&mask, SIGTERM));
    return real(visit, data);
}

/* Checks that no handler can run under the lock: it would wait for the helper, and the helper for
 * the lock. */
static void no_signal_ends_the_process_under_the_lock(void **state) {
    sigset_t mask;
    (void)state;
    atomic_store(&looks, 0);
    atomic_store(&open_looks, 0);
    (void)modules_refresh(&modules);
    (void)modules_refresh_before_unload(&modules);
    modules_refresh_before_load(&modules);
    assert_true(atomic_load(&looks) >= 3);
    assert_int_equal(atomic_load(&open_looks), 0);
    pthread_sigmask(SIG_BLOCK, NULL, &mask);
    assert_false(sigismember(&mask, SIGTERM));
}

static void objects_from_the_start_are_fixed(void **state) {
    (void)state;
    struct cfi_tables tables;
    void *library;
    const uintptr_t in_libc = (uintptr_t)dlsym(RTLD_DEFAULT, "qsort");
    assert_int_equal(modules_open(&modules, (uintptr_t)load, 0, &tables), MODULES_FOUND);
    assert_true(tables.fixed);
    assert_int_equal(modules_open(&modules, in_libc, 0, &tables), MODULES_FOUND);
    assert_true(tables.fixed);
    assert_int_equal(modules_open(&modules, getauxval(AT_SYSINFO_EHDR), 0, &tables), MODULES_FOUND);
    assert_true(tables.fixed);
    const uintptr_t loaded = load(&library);
    assert_int_equal(modules_open(&modules, loaded, 0, &tables), MODULES_FOUND);
    assert_false(tables.fixed);
    modules_close(&modules, &tables);
    dlclose(library);
    assert_int_equal(modules_open(&modules, loaded, 0, &tables), MODULES_NONE);
    assert_int_equal(modules_open(&modules, 4096, 0, &tables), MODULES_NONE);
    assert_int_equal(atomic_load(&modules.readers), 0);
}

static atomic_int reading;
static atomic_int read_to_the_end;

static void *reads_for_a_while(void *pc) {
    struct cfi_tables tables;
    if (modules_open(&modules, (uintptr_t)pc, 0, &tables) != MODULES_FOUND)
        return NULL;
    atomic_store(&reading, 1);
    usleep(30000);
    atomic_store(&read_to_the_end, 1);
    modules_close(&modules, &tables);
    return pc;
}

static void unloading_waits_for_readers_and_keeps_new_ones_away(void **state) {
    (void)state;
    struct cfi_tables tables;
    pthread_t reader;
    void *library;
    const uintptr_t loaded = load(&library);
    pthread_create(&reader, NULL, reads_for_a_while, (void *)loaded);
    while (!atomic_load(&reading))
        usleep(100);
    modules_begin_unload(&modules);
    assert_int_equal(atomic_load(&read_to_the_end), 1);
    assert_int_equal(modules_open(&modules, loaded, 0, &tables), MODULES_CHANGING);
    /* a module that cannot go may be read; an unloading thread cannot unmap it meanwhile */
    assert_int_equal(modules_open(&modules, (uintptr_t)load, 0, &tables), MODULES_FOUND);
    assert_int_equal(modules_open(&modules, loaded, 1, &tables), MODULES_FOUND);
    modules_close(&modules, &tables);
    modules_end_unload(&modules);
    assert_int_equal(modules_open(&modules, loaded, 0, &tables), MODULES_FOUND);
    modules_close(&modules, &tables);
    pthread_join(reader, NULL);
    dlclose(library);
}

static void unloading_waits_no_longer_than_a_moment(void **state) {
    (void)state;
    struct cfi_tables tables;
    void *library;
    const uintptr_t loaded = load(&library);
    assert_int_equal(modules_open(&modules, loaded, 0, &tables), MODULES_FOUND);
    modules_begin_unload(&modules); /* a reader that never ends */
    modules_end_unload(&modules);
    modules_close(&modules, &tables);
    dlclose(library);
}

static int start(void **state) {
    (void)state;
    return modules_start(&modules) ? 0 : -1;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_signal_ends_the_process_under_the_lock),
        cmocka_unit_test(objects_from_the_start_are_fixed),
        cmocka_unit_test(unloading_waits_for_readers_and_keeps_new_ones_away),
        cmocka_unit_test(unloading_waits_no_longer_than_a_moment),
    };
    return cmocka_run_group_tests(tests, start, NULL);
}
