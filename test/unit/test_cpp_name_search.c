/* Tests the search for OpenTelemetry's C++ API in what is loaded. */
#include "unit.h"

#include "process/cpp_name_search.h"

#include <link.h>

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
    while (looks < 100000 && cpp_name_search(&search, 0))
        looks++;
    assert_true(looks > 1);
    assert_int_equal(search.searched_count, objects);
    assert_false(cpp_name_search(&search, UINT64_MAX));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_search_that_was_cut_goes_on)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
