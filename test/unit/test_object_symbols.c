/* What objects define, read from their tables, beside what the loader says. */
#include "unit.h"

#include "next_symbol.h"
#include "object_symbols.h"

#include <dlfcn.h>

static const char *const in_libc[] = {"malloc", "sigaction", "getenv",     "exit",
                                      "clone",  "dlclose",   "thrd_create"};
enum { IN_LIBC = sizeof in_libc / sizeof *in_libc };

static const struct link_map *libc(void) {
    Dl_info info;
    struct link_map *object = NULL;
    void *const address = dlsym(RTLD_NEXT, "gnu_get_libc_version");
    assert_int_not_equal(dladdr1(address, &info, (void **)(void *)&object, RTLD_DL_LINKMAP), 0);
    return object;
}

static void it_defines_what_the_loader_finds_in_it(void **state) {
    (void)state;
    for (int i = 0; i < IN_LIBC; i++) {
        void *const found = object_symbols_find(libc(), in_libc[i]);
        assert_non_null(found);
        assert_ptr_equal(found, dlsym(RTLD_NEXT, in_libc[i]));
    }
}

static void what_it_only_refers_to_it_does_not_define(void **state) {
    (void)state;
    assert_null(object_symbols_find(libc(), "_dl_find_object_of_nobody"));
    assert_null(object_symbols_find(libc(), "__tls_get_addr")); /* the loader's */
    assert_null(object_symbols_find(object_symbols_own(), "dladdr1"));
}

static void our_own_object_is_the_one_that_this_is_in(void **state) {
    (void)state;
    const struct link_map *const own = object_symbols_own();
    assert_non_null(own);
    assert_null(own->l_prev); /* the executable: this test is linked to it */
    assert_ptr_equal(own->l_ld, _DYNAMIC);
}

static void the_next_symbol_is_the_loader_s(void **state) {
    (void)state;
    for (int i = 0; i < IN_LIBC; i++)
        assert_ptr_equal(next_symbol(in_libc[i]), dlsym(RTLD_NEXT, in_libc[i]));
    assert_null(next_symbol("of_nobody"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_defines_what_the_loader_finds_in_it),
        cmocka_unit_test(what_it_only_refers_to_it_does_not_define),
        cmocka_unit_test(our_own_object_is_the_one_that_this_is_in),
        cmocka_unit_test(the_next_symbol_is_the_loader_s),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
