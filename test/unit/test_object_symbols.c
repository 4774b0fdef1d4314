/* Tests reading the definitions of objects from their tables, and compares them with the loader's
 * results. */
#include "unit.h"

#include "symbols/next_symbol.h"
#include "symbols/object_symbols.h"

#include <dlfcn.h>
#include <elf.h>
#include <stdint.h>
#include <string.h>

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

static void definitions_are_those_that_the_loader_finds(void **state) {
    (void)state;
    for (int i = 0; i < IN_LIBC; i++) {
        struct symbol symbol = {.name = in_libc[i]};
        object_symbols_find_all(libc(), &symbol, 1);
        assert_non_null(symbol.address);
        assert_ptr_equal(symbol.address, dlsym(RTLD_NEXT, in_libc[i]));
        assert_ptr_equal(symbol.object, libc());
    }
}

static void a_reference_is_no_definition(void **state) {
    (void)state;
    assert_false(object_symbols_defines(libc(), "_dl_find_object_of_nobody"));
    assert_false(object_symbols_defines(libc(), "__tls_get_addr")); /* a symbol of the loader */
    assert_false(object_symbols_defines(object_symbols_own(), "dladdr1"));
}

static void a_found_address_stays(void **state) {
    (void)state;
    struct symbol symbols[] = {{.name = "malloc", .address = &symbols}, {.name = "free"}};
    object_symbols_find_all(libc(), symbols, 2);
    assert_ptr_equal(symbols[0].address, &symbols);
    assert_ptr_equal(symbols[1].address, dlsym(RTLD_NEXT, "free"));
}

/* --- objects made by hand, which no compiler here makes --- */

static int answered(void) {
    return 42;
}

static void *resolver(void) {
    return (void *)(uintptr_t)answered;
}

enum { OLD = 1, NEW, HIDDEN, INDIRECT, THREAD_LOCAL, UNDEFINED, NO_HASH_SYMBOLS };

static struct {
    ElfW(Sym) symbols[NO_HASH_SYMBOLS];
    uint32_t hash[2]; /* buckets, symbols: all that is read of DT_HASH */
    uint16_t versions[NO_HASH_SYMBOLS];
    ElfW(Dyn) dynamic[6];
} made;

static ElfW(Sym) symbol_of(uint32_t name, const void *value, unsigned type, unsigned visibility) {
    return (ElfW(Sym)){.st_name = name,
                       .st_info = (unsigned char)ELF64_ST_INFO(STB_GLOBAL, type),
                       .st_other = (unsigned char)visibility,
                       .st_shndx = value ? 1 : SHN_UNDEF,
                       .st_value = (uintptr_t)value};
}

static struct link_map made_object(void) {
    static const char strings[] = "\0two\0hidden\0indirect\0thread\0undefined";
    static int old, new, hidden, thread;
    made.symbols[OLD] = symbol_of(1, &old, STT_OBJECT, STV_DEFAULT);
    made.symbols[NEW] = symbol_of(1, &new, STT_OBJECT, STV_DEFAULT);
    made.symbols[HIDDEN] = symbol_of(5, &hidden, STT_OBJECT, STV_HIDDEN);
    made.symbols[INDIRECT] = symbol_of(12, (void *)(uintptr_t)resolver, STT_GNU_IFUNC, STV_DEFAULT);
    made.symbols[THREAD_LOCAL] = symbol_of(21, &thread, STT_TLS, STV_DEFAULT);
    made.symbols[UNDEFINED] = symbol_of(28, NULL, STT_FUNC, STV_DEFAULT);
    made.symbols[UNDEFINED].st_value = 1; /* as in executables that are not position independent */
    made.hash[1] = NO_HASH_SYMBOLS;
    made.versions[OLD] = 0x8000 | 2;
    made.versions[NEW] = 3;
    const ElfW(Dyn) dynamic[] = {{DT_SYMTAB, {(uintptr_t)made.symbols}},
                                 {DT_STRTAB, {(uintptr_t)strings}},
                                 {DT_HASH, {(uintptr_t)made.hash}},
                                 {DT_VERSYM, {(uintptr_t)made.versions}},
                                 {DT_NULL, {0}}};
    memcpy(made.dynamic, dynamic, sizeof dynamic);
    return (struct link_map){.l_ld = made.dynamic};
}

static void the_default_version_is_found_without_a_gnu_hash_table(void **state) {
    (void)state;
    const struct link_map object = made_object();
    struct symbol two = {.name = "two"};
    object_symbols_find_all(&object, &two, 1);
    assert_ptr_equal(two.address, made.symbols[NEW].st_value);
}

static void an_indirect_function_is_its_resolvers_result(void **state) {
    (void)state;
    const struct link_map object = made_object();
    struct symbol indirect = {.name = "indirect"};
    object_symbols_find_all(&object, &indirect, 1);
    assert_ptr_equal(indirect.address, (void *)(uintptr_t)answered);
}

static void hidden_symbols_are_not_found(void **state) {
    (void)state;
    const struct link_map object = made_object();
    assert_false(object_symbols_defines(&object, "hidden"));
    assert_false(object_symbols_defines(&object, "thread"));
    assert_false(object_symbols_defines(&object, "undefined"));
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
    assert_null(first_symbol("of_nobody"));
    assert_ptr_equal(first_symbol("malloc"), next_symbol("malloc"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(definitions_are_those_that_the_loader_finds),
        cmocka_unit_test(a_reference_is_no_definition),
        cmocka_unit_test(a_found_address_stays),
        cmocka_unit_test(the_default_version_is_found_without_a_gnu_hash_table),
        cmocka_unit_test(an_indirect_function_is_its_resolvers_result),
        cmocka_unit_test(hidden_symbols_are_not_found),
        cmocka_unit_test(our_own_object_is_the_one_that_this_is_in),
        cmocka_unit_test(the_next_symbol_is_the_loader_s),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
