/* Tests an object's tables, read and changed in place, and tables whose contents are wrong. */
#include "unit.h"

#include "libraries/object_tables.h"

#include <curl/curl.h>
#include <dlfcn.h>
#include <elf.h>

/* --- a real library --- */

static int find_libcurl(struct dl_phdr_info *info, size_t size, void *arg) {
    (void)size;
    if (!strstr(info->dlpi_name, "libcurl"))
        return 0;
    *(struct dl_phdr_info *)arg = *info;
    return 1;
}

static struct object_tables libcurl(void) {
    struct dl_phdr_info info = {0};
    struct object_tables tables;
    assert_non_null(curl_version()); /* linkers leave out a library that no code uses */
    assert_int_equal(dl_iterate_phdr(find_libcurl, &info), 1);
    assert_true(object_tables_open(&tables, &info));
    return tables;
}

static void a_library_has_its_soname_and_its_needed_libraries(void **state) {
    const struct object_tables tables = libcurl();
    (void)state;
    assert_non_null(strstr(object_tables_soname(&tables), "libcurl"));
    assert_true(object_tables_need(&tables, "libc.so.6"));
    assert_false(object_tables_need(&tables, "libnobody.so.1"));
}

static void an_import_is_where_the_loader_has_put_the_function(void **state) {
    const struct object_tables tables = libcurl();
    (void)state;
    const uintptr_t *const slot = object_tables_import(&tables, "recv");
    assert_non_null(slot);
    assert_ptr_equal((void *)*slot, dlsym(RTLD_DEFAULT, "recv"));
    /* the library defines this symbol itself */
    assert_null(object_tables_import(&tables, "curl_global_init"));
}

static void a_reference_is_found_by_its_name(void **state) {
    /* the first is the library's own */
    static const char *const two[] = {"curl_global_init", "recv", NULL};
    static const char *const none[] = {"curl_global_init", "rec", "recvv", NULL};
    const struct object_tables tables = libcurl();
    (void)state;
    assert_string_equal(object_tables_refer(&tables, two), "recv");
    assert_null(object_tables_refer(&tables, none));
}

static void read_only_tables_can_be_written_between_unlock_and_lock(void **state) {
    const struct object_tables tables = libcurl();
    (void)state;
    volatile uintptr_t *const slot = object_tables_import(&tables, "recv");
    const uintptr_t before = *slot;
    assert_true(object_tables_unlock(&tables));
    *slot = 0;
    *slot = before;
    object_tables_lock(&tables);
}

/* --- made by hand --- */

enum { WORDS = 512 };
static _Alignas(4096) uintptr_t memory[WORDS];

static ElfW(Phdr) headers[] = {
    {.p_type = PT_LOAD, .p_flags = PF_R | PF_W, .p_memsz = sizeof memory},
    {.p_type = PT_DYNAMIC, .p_flags = PF_R | PF_W},
};

static struct dl_phdr_info hand_made(const ElfW(Dyn) * entries, size_t count) {
    memset(memory, 0, sizeof memory);
    memcpy(memory, entries, count * sizeof *entries);
    headers[1].p_vaddr = 0;
    headers[1].p_memsz = count * sizeof *entries;
    return (struct dl_phdr_info){
        .dlpi_addr = (uintptr_t)memory, .dlpi_name = "", .dlpi_phdr = headers, .dlpi_phnum = 2};
}

static void a_section_without_an_end_is_none(void **state) {
    const ElfW(Dyn) entries[] = {{DT_SONAME, {1}}, {DT_FINI, {1}}};
    const struct dl_phdr_info info = hand_made(entries, 2);
    struct object_tables tables;
    (void)state;
    assert_false(object_tables_open(&tables, &info));
}

static void a_section_outside_of_the_segments_is_none(void **state) {
    const ElfW(Dyn) entries[] = {{DT_NULL, {0}}};
    const struct dl_phdr_info info = hand_made(entries, 1);
    struct object_tables tables;
    (void)state;
    headers[1].p_vaddr = sizeof memory - 1;
    assert_false(object_tables_open(&tables, &info));
    headers[1].p_vaddr = -(uintptr_t)4096;
    assert_false(object_tables_open(&tables, &info));
}

/* Takes the last of several entries, as the loader does; sizes and offsets lead nowhere. */
static void offsets_outside_the_object_are_not_followed(void **state) {
    const ElfW(Dyn)
        entries[] = {{DT_FINI, {1}},       {DT_STRTAB, {256}},     {DT_STRSZ, {sizeof memory}},
                     {DT_SONAME, {8}},     {DT_NEEDED, {1 << 30}}, {DT_JMPREL, {512}},
                     {DT_PLTRELSZ, {256}}, {DT_SYMTAB, {1024}},    {DT_FINI, {2}},
                     {DT_NULL, {0}}};
    const struct dl_phdr_info info = hand_made(entries, sizeof entries / sizeof *entries);
    struct object_tables tables;
    ElfW(Rela) *const relocations = (ElfW(Rela) *)((uintptr_t)memory + 512);
    (void)state;
    relocations[0] = (ElfW(Rela)){-(uintptr_t)64, ELF64_R_INFO(0, R_X86_64_JUMP_SLOT), 0};
    relocations[1] = (ElfW(Rela)){64, ELF64_R_INFO(1 << 30, R_X86_64_JUMP_SLOT), 0};
    assert_true(object_tables_open(&tables, &info));
    assert_int_equal(dynamic_entry(&tables.dynamic, DT_FINI)->d_un.d_ptr, 2);
    assert_null(object_tables_soname(&tables)); /* the strings are longer than the segment */
    assert_false(object_tables_need(&tables, "libc.so.6"));
    assert_null(object_tables_import(&tables, ""));
    assert_null(object_tables_refer(&tables, (const char *const[]){"", NULL}));
}

static bool note_offset(const ElfW(Rela) * relocation, void *arg) {
    char *const seen = arg;
    snprintf(seen + strlen(seen), 16, "%d ", (int)relocation->r_offset);
    return relocation->r_offset == 9;
}

static const char *offsets_visited(const struct dl_phdr_info *info) {
    static char seen[64];
    const struct object_segments segments = object_segments_of(info);
    const struct dynamic_object object = dynamic_object_of(&segments);
    ElfW(Rela) *const relocations = (ElfW(Rela) *)((uintptr_t)memory + 512);
    for (int i = 0; i < 6; i++)
        relocations[i] = (ElfW(Rela)){.r_offset = (ElfW(Addr))i};
    seen[0] = 0;
    assert_false(dynamic_relocations_visit(&segments, &object, note_offset, seen));
    relocations[1].r_offset = 9;
    assert_true(dynamic_relocations_visit(&segments, &object, note_offset, seen));
    return seen;
}

/* Lists two relocations of calls, and four others, of which two are relative. */
static void relocations_of_calls_are_visited_before_the_others(void **state) {
    enum { SIZE = sizeof(ElfW(Rela)) };
    const ElfW(Dyn)
        entries[] = {{DT_RELA, {512 + 2 * SIZE}}, {DT_RELASZ, {4 * SIZE}},   {DT_RELACOUNT, {2}},
                     {DT_JMPREL, {512}},          {DT_PLTRELSZ, {2 * SIZE}}, {DT_NULL, {0}}};
    const struct dl_phdr_info info = hand_made(entries, sizeof entries / sizeof *entries);
    (void)state;
    assert_string_equal(offsets_visited(&info), "0 1 4 5 0 9 ");
}

static void a_table_of_relocations_outside_of_the_segments_is_left_out(void **state) {
    enum { SIZE = sizeof(ElfW(Rela)) };
    const ElfW(Dyn) entries[] = {{DT_RELA, {sizeof memory - SIZE}},
                                 {DT_RELASZ, {2 * SIZE}},
                                 {DT_JMPREL, {512}},
                                 {DT_PLTRELSZ, {2 * SIZE}},
                                 {DT_NULL, {0}}};
    const struct dl_phdr_info info = hand_made(entries, sizeof entries / sizeof *entries);
    (void)state;
    assert_string_equal(offsets_visited(&info), "0 1 0 9 ");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_library_has_its_soname_and_its_needed_libraries),
        cmocka_unit_test(a_reference_is_found_by_its_name),
        cmocka_unit_test(an_import_is_where_the_loader_has_put_the_function),
        cmocka_unit_test(read_only_tables_can_be_written_between_unlock_and_lock),
        cmocka_unit_test(a_section_without_an_end_is_none),
        cmocka_unit_test(a_section_outside_of_the_segments_is_none),
        cmocka_unit_test(offsets_outside_the_object_are_not_followed),
        cmocka_unit_test(relocations_of_calls_are_visited_before_the_others),
        cmocka_unit_test(a_table_of_relocations_outside_of_the_segments_is_left_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
