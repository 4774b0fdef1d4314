/* Tests which object an address of a stack belongs to, when several objects were loaded there:
 * whatever was forgotten, and whatever came and went unseen, no object is named in another's
 * place. */
#include "unit.h"

#include "symbolize/module_at.h"
#include "unwind/unloaded_modules.h"

#include <stdio.h>
#include <sys/mman.h>

static struct unloaded_modules unloaded;

static int begin(void **state) {
    (void)state;
    unloaded = (struct unloaded_modules){0};
    return 0;
}

static int end(void **state) {
    (void)state;
    return unloaded.memory ? munmap(unloaded.memory, sizeof *unloaded.memory) : 0;
}

static struct harvest_module object(const char *path, uint64_t start, uint64_t first,
                                    uint64_t last) {
    return (struct harvest_module){.load_bias = start,
                                   .start = start,
                                   .end = start + 100,
                                   .text_start = start,
                                   .text_end = start + 100,
                                   .path = path,
                                   .build_id = (const uint8_t *)path,
                                   .build_id_size = 2,
                                   .first_interval = first,
                                   .last_interval = last};
}

/* Adds an object whose path is valid only during the call, as a snapshot's is. Returns true if an
 * object was forgotten for it, which is then in *forgotten. */
static bool add(const char *path, uint64_t start, uint64_t first, uint64_t last,
                struct harvest_module *forgotten) {
    char text[16];
    snprintf(text, sizeof text, "%s", path);
    const struct harvest_module gone = object(text, start, first, last);
    return unloaded_modules_add(&unloaded, &gone, forgotten);
}

static const char *name_at(uint64_t address, uint64_t interval) {
    static char name[16];
    struct module_snapshot none = {.count = 0};
    struct module_snapshot *const all = unloaded_modules_join(&unloaded, &none);
    assert_non_null(all);
    const struct harvest_module *const found =
        module_at(all->modules, all->count, address, interval);
    if (found)
        assert_memory_equal(found->build_id, found->path, 2);
    snprintf(name, sizeof name, "%s", found ? found->path : "");
    munmap(all, all->mapping_size);
    return name;
}

static void each_is_named_in_its_intervals(void **state) {
    (void)state;
    struct harvest_module forgotten;
    assert_false(add("/a", 1000, 1, 5, &forgotten));
    assert_false(add("/b", 1050, 5, 9, &forgotten));
    assert_string_equal(name_at(1060, 1), "/a");
    assert_string_equal(name_at(1060, 4), "/a");
    assert_string_equal(name_at(1060, 5), ""); /* either object */
    assert_string_equal(name_at(1010, 5), "/a");
    assert_string_equal(name_at(1060, 6), "/b");
    assert_string_equal(name_at(1060, 10), "");
    assert_string_equal(name_at(1160, 6), "");
}

/* A program may load one library again and again: it is remembered once, unless another library was
 * loaded in between. */
static void a_library_that_is_loaded_again_at_once_is_one(void **state) {
    (void)state;
    struct harvest_module forgotten;
    for (uint64_t i = 1; i < 5000; i += 2)
        assert_false(add("/a", 1000, i, i + 2, &forgotten));
    assert_int_equal(unloaded_modules_count(&unloaded), 1);
    assert_string_equal(name_at(1000, 1), "/a");
    assert_string_equal(name_at(1000, 5000), "/a");
    assert_false(add("/b", 1000, 5001, 5003, &forgotten));
    assert_false(add("/a", 1000, 5003, 5005, &forgotten));
    assert_int_equal(unloaded_modules_count(&unloaded), 3);
    assert_string_equal(name_at(1000, 5002), "/b");
    assert_string_equal(name_at(1000, 5004), "/a");
}

static void the_oldest_is_forgotten_and_said_to_be(void **state) {
    (void)state;
    struct harvest_module forgotten;
    for (uint64_t i = 0; i < UNLOADED_MODULES; i++)
        assert_false(add("/a", 1000 * i, 2 * i, 2 * i + 1, &forgotten));
    assert_true(add("/b", 7, 5, 6, &forgotten));
    assert_int_equal(forgotten.start, 0);
    assert_int_equal(forgotten.last_interval, 1);
    assert_int_equal(unloaded_modules_count(&unloaded), UNLOADED_MODULES);
    assert_string_equal(name_at(7, 5), "/b");
    assert_string_equal(name_at(1000, 2), "/a");
    assert_string_equal(name_at(0, 0), "");
}

/* Unloads different builds of one plugin, which had the same path and the same address. */
static void another_build_at_its_path_is_another(void **state) {
    (void)state;
    struct harvest_module forgotten;
    struct harvest_module gone = object("/a", 1000, 1, 3);
    gone.build_id = (const uint8_t *)"1";
    gone.build_id_size = 1;
    assert_false(unloaded_modules_add(&unloaded, &gone, &forgotten));
    gone.first_interval = 3;
    gone.last_interval = 5;
    assert_false(unloaded_modules_add(&unloaded, &gone, &forgotten));
    assert_int_equal(unloaded_modules_count(&unloaded), 1);
    gone.build_id = (const uint8_t *)"2";
    gone.first_interval = 5;
    gone.last_interval = 7;
    assert_false(unloaded_modules_add(&unloaded, &gone, &forgotten));
    gone.build_id = NULL;
    gone.build_id_size = 0;
    gone.first_interval = 7;
    gone.last_interval = 9;
    assert_false(unloaded_modules_add(&unloaded, &gone, &forgotten));
    gone.eh_frame_hdr_size = 8;
    gone.first_interval = 9;
    gone.last_interval = 11;
    assert_false(unloaded_modules_add(&unloaded, &gone, &forgotten));
    assert_int_equal(unloaded_modules_count(&unloaded), 4);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(each_is_named_in_its_intervals),
        TEST(a_library_that_is_loaded_again_at_once_is_one),
        TEST(another_build_at_its_path_is_another),
        TEST(the_oldest_is_forgotten_and_said_to_be),
    };
#undef TEST
    return cmocka_run_group_tests(tests, NULL, NULL);
}
