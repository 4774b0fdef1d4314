/* Tests the search for OpenTelemetry's C++ API in the loaded objects. */
#include "unit.h"

#include "capture/context/cpp_name_search.h"
#include "capture/symbols/loader_state.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

static struct cpp_name_search search;

static int count_object(struct dl_phdr_info *object, size_t size, void *count) {
    (void)object;
    (void)size;
    ++*(size_t *)count;
    return 0;
}

static void a_search_that_was_cut_goes_on(void **state) {
    size_t objects = 0;
    unsigned looks = 0;
    (void)state;
    dl_iterate_phdr(count_object, &objects);
    while (looks < 100000 && cpp_name_search(&search, 0) == CPP_SEARCH_DONE)
        looks++;
    assert_true(looks > 1);
    assert_int_equal(search.searched_count, objects);
    assert_int_equal(cpp_name_search(&search, UINT64_MAX), CPP_SEARCH_SAME);
}

static atomic_int inside; /* the other thread's state: 1: inside the loader; 2: to leave it */
static atomic_int lists;

static struct dl_phdr_info first_object;
static struct dl_phdr_info *invented; /* if set, it is the only object */

static int keep_first(struct dl_phdr_info *object, size_t size, void *unused) {
    (void)unused;
    memcpy(&first_object, object, size < sizeof first_object ? size : sizeof first_object);
    return 1;
}

/* Replaces libc's function. While the other thread is inside the loader, visits the first object
 * alone, as a caller that wants the counters does: libc's function would wait for the list's lock.
 */
int dl_iterate_phdr(int (*visit)(struct dl_phdr_info *, size_t, void *), void *data) {
    static int (*real)(int (*)(struct dl_phdr_info *, size_t, void *), void *);
    if (!real) {
        void *const next = dlsym(RTLD_NEXT, "dl_iterate_phdr");
        memcpy(&real, &next, sizeof real);
    }
    atomic_fetch_add(&lists, 1);
    if (invented)
        return visit(invented, sizeof *invented, data);
    if (atomic_load(&inside) == 1)
        return visit(&first_object, sizeof first_object, data);
    return real(visit, data);
}

static void *stay_inside(void *unused) {
    assert_true(loader_state_try_enter());
    atomic_store(&inside, 1);
    while (atomic_load(&inside) == 1)
        usleep(100);
    loader_state_leave();
    return unused;
}

/* glibc's dl_iterate_phdr() may crash beside a dlopen() of a library with thread-local variables.
 */
static void the_list_is_not_visited_while_another_thread_loads(void **state) {
    pthread_t thread;
    (void)state;
    loader_state_learn();
    if (!loader_state_is_known())
        skip();
    dl_iterate_phdr(keep_first, NULL);
    pthread_create(&thread, NULL, stay_inside, NULL);
    while (!atomic_load(&inside))
        usleep(100);
    search.adds = 0;
    const int before = atomic_load(&lists);
    assert_int_equal(cpp_name_search(&search, UINT64_MAX), CPP_SEARCH_PREVENTED);
    assert_int_equal(atomic_load(&lists), before + 1); /* one visit of the first object, for the
                                                        * counters */
    atomic_store(&inside, 2);
    pthread_join(thread, NULL);
    assert_int_equal(cpp_name_search(&search, UINT64_MAX), CPP_SEARCH_DONE);
    assert_int_equal(cpp_name_search(&search, UINT64_MAX), CPP_SEARCH_SAME);
}

/* Holds an object: all of it, and its notes with a build id. */
static struct image {
    ElfW(Phdr) headers[2];
    struct {
        Elf64_Nhdr head;
        char owner[4];
        uint8_t id[20];
    } notes;
} image = {
    .headers = {{.p_type = PT_LOAD, .p_flags = PF_R, .p_memsz = sizeof image},
                {.p_type = PT_NOTE,
                 .p_flags = PF_R,
                 .p_vaddr = offsetof(struct image, notes),
                 .p_memsz = sizeof image.notes}},
    .notes = {.head = {.n_namesz = 4, .n_descsz = 20, .n_type = NT_GNU_BUILD_ID}, .owner = "GNU"}};

/* A plugin is unloaded, and a build of the same size is loaded at its address. */
static void another_build_at_the_same_address_is_searched(void **state) {
    struct cpp_name_search plugins = {.count = 0};
    struct dl_phdr_info plugin = {.dlpi_addr = (uintptr_t)&image,
                                  .dlpi_name = "",
                                  .dlpi_phdr = image.headers,
                                  .dlpi_phnum = 2,
                                  .dlpi_adds = 1};
    (void)state;
    invented = &plugin;
    assert_int_equal(cpp_name_search(&plugins, UINT64_MAX), CPP_SEARCH_DONE);
    const uint64_t first = plugins.searched[0];
    plugins.found_in[plugins.count] = first;
    plugins.found[plugins.count++].bias = plugin.dlpi_addr;
    image.notes.id[0] = 1;
    plugin.dlpi_adds++;
    plugin.dlpi_subs++;
    assert_int_equal(cpp_name_search(&plugins, UINT64_MAX), CPP_SEARCH_DONE);
    invented = NULL;
    assert_int_equal(plugins.searched_count, 1);
    assert_true(plugins.searched[0] != first);
    assert_int_equal(plugins.count, 0); /* the former build's name is not searched for there */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(another_build_at_the_same_address_is_searched),
        cmocka_unit_test(a_search_that_was_cut_goes_on),
        cmocka_unit_test(the_list_is_not_visited_while_another_thread_loads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
