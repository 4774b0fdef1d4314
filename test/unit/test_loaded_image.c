/* Tests a stand-in for an object's file, made of memory. No file is made of an object that lies or
 * goes away, and no foreign memory is read or freed. */
#include "unit.h"

#include "symbolize/elf_file.h"
#include "symbolize/loaded_image.h"
#include "symbolize/symbol_table.h"

#include <elf.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PAGES = 4, PAGE_BYTES = 4096, SYMBOLS = 4, FIRST_HASHED = 2, BUCKETS = 2 };

/* Holds an object as the loader leaves it, two functions long; its addresses in the file begin at
 * `object`, and memory behind it belongs to no object. */
struct object {
    Elf64_Ehdr header;
    Elf64_Phdr segments[2];
    Elf64_Dyn dynamic[6];
    struct {
        Elf64_Nhdr header;
        char name[4];
        uint8_t id[8];
    } note;
    struct {
        uint32_t buckets, first, blooms, shift;
        uint64_t bloom;
        uint32_t bucket[BUCKETS];
        uint32_t chain[SYMBOLS - FIRST_HASHED];
    } hash;
    uint32_t old_hash[2];
    Elf64_Sym symbols[SYMBOLS];
    char strings[32];
    char code[256];
};

enum { DYNAMIC, NOTE };
enum { SYMTAB, STRTAB, STRSZ, HASH };

static struct object *object;
static struct harvest_module module;

static int make_object(void **state) {
    (void)state;
    char *const memory = mmap(NULL, (PAGES + 1) * PAGE_BYTES, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED || munmap(memory + PAGES * PAGE_BYTES, PAGE_BYTES) != 0)
        return -1;
    object = (struct object *)(void *)memory;
    *object = (struct object){
        .header = {.e_phoff = offsetof(struct object, segments),
                   .e_phentsize = sizeof(Elf64_Phdr),
                   .e_phnum = 2},
        .segments = {{.p_type = PT_DYNAMIC,
                      .p_vaddr = offsetof(struct object, dynamic),
                      .p_memsz = sizeof object->dynamic},
                     {.p_type = PT_NOTE,
                      .p_vaddr = offsetof(struct object, note),
                      .p_memsz = sizeof object->note}},
        .dynamic = {{DT_SYMTAB, {(uintptr_t)object->symbols}},
                    {DT_STRTAB, {(uintptr_t)object->strings}},
                    {DT_STRSZ, {sizeof object->strings}},
                    {DT_GNU_HASH, {(uintptr_t)&object->hash}}},
        .note = {{4, 8, NT_GNU_BUILD_ID}, "GNU", "12345678"},
        .hash = {BUCKETS, FIRST_HASHED, 1, 6, 0, {2, 3}, {1, 1}},
        .old_hash = {1, SYMBOLS},
        .symbols = {{0},
                    {.st_name = 1, .st_info = STT_FUNC},
                    {.st_name = 8,
                     .st_info = STT_FUNC,
                     .st_shndx = 9,
                     .st_value = offsetof(struct object, code),
                     .st_size = 100},
                    {.st_name = 14,
                     .st_info = STT_FUNC,
                     .st_shndx = 9,
                     .st_value = offsetof(struct object, code) + 100,
                     .st_size = 100}},
        .strings = "\0import\0first\0second",
    };
    memcpy(object->header.e_ident, ELFMAG, SELFMAG);
    module = (struct harvest_module){.load_bias = (uintptr_t)object,
                                     .start = (uintptr_t)object,
                                     .end = (uintptr_t)object + PAGES * PAGE_BYTES,
                                     .text_start = (uintptr_t)object->code,
                                     .text_end = (uintptr_t)(object + 1),
                                     .path = "/nowhere/deleted.so",
                                     .build_id = (const uint8_t *)"12345678",
                                     .build_id_size = 8};
    return 0;
}

static int unmap_object(void **state) {
    (void)state;
    return munmap(object, PAGES * PAGE_BYTES);
}

/* Returns the name at `offset` into the code; "" = none, NULL = no file. */
static const char *name_at(size_t offset) {
    static char name[MAX_SYMBOL_NAME];
    struct elf_file file;
    struct symbol_table table = {0};
    const bool opened = elf_file_open(&file, &module);
    struct symbol symbol;
    if (opened)
        symbol_table_load(&table, &file);
    if (!opened ||
        !symbol_table_find(&table, &file, offsetof(struct object, code) + offset, &symbol) ||
        !symbol_table_name(&table, &symbol, &file, name))
        name[0] = 0;
    symbol_table_free(&table);
    elf_file_close(&file);
    return opened ? name : NULL;
}

static void assert_names(void) {
    assert_string_equal(name_at(0), "first");
    assert_string_equal(name_at(99), "first");
    assert_string_equal(name_at(100), "second");
    assert_string_equal(name_at(200), "");
}

static void names_are_read_from_memory(void **state) {
    (void)state;
    assert_names();
    object->dynamic[HASH] = (Elf64_Dyn){DT_HASH, {(uintptr_t)object->old_hash}};
    assert_names();
}

/* Leaves the file's addresses in the object, as some loaders do. */
static void addresses_may_be_the_files(void **state) {
    (void)state;
    object->dynamic[SYMTAB].d_un.d_ptr = offsetof(struct object, symbols);
    object->dynamic[STRTAB].d_un.d_ptr = offsetof(struct object, strings);
    object->dynamic[HASH].d_un.d_ptr = offsetof(struct object, hash);
    assert_names();
}

/* Reads everything, and then finds that the object is not the requested one: the memory of its file
 * is freed once. */
static void another_object_is_none(void **state) {
    (void)state;
    object->note.id[7]++;
    assert_null(name_at(0));
    module.build_id = NULL;
    module.build_id_size = 0;
    assert_null(name_at(0));
}

static void an_unmapped_object_has_no_symbols(void **state) {
    (void)state;
    void *const behind = (char *)object + PAGES * PAGE_BYTES;
    const Elf64_Dyn hash = object->dynamic[HASH];
    for (size_t i = 0; i < 4; i++) {
        const Elf64_Dyn there = object->dynamic[i];
        if (i == STRSZ)
            continue;
        object->dynamic[i].d_un.d_ptr = (uintptr_t)behind;
        assert_null(name_at(0));
        object->dynamic[i].d_un.d_ptr = (uintptr_t)behind - 4; /* a part of the table is there */
        assert_null(name_at(0));
        object->dynamic[i] = there;
    }
    object->dynamic[HASH] = (Elf64_Dyn){DT_HASH, {(uintptr_t)behind - 4}};
    assert_null(name_at(0));
    object->dynamic[HASH] = hash;
    module.unloaded = true;
    assert_null(name_at(0));
}

static void sizes_that_lie_are_refused(void **state) {
    (void)state;
    struct {
        void *field;
        size_t size;
        uint64_t lie;
    } const lies[] = {
#define LIE(field, value) {&object->field, sizeof object->field, value}
        LIE(header.e_ident[0], 0),
        LIE(header.e_phnum, 0),
        LIE(header.e_phnum, UINT16_MAX),
        LIE(header.e_phentsize, 8),
        LIE(header.e_phoff, UINT64_MAX),
        LIE(header.e_phoff, PAGES * PAGE_BYTES),
        LIE(segments[DYNAMIC].p_memsz, UINT64_MAX),
        LIE(segments[DYNAMIC].p_memsz, 0),
        LIE(segments[DYNAMIC].p_vaddr, UINT64_MAX / 2),
        LIE(segments[NOTE].p_memsz, 0),
        LIE(segments[NOTE].p_memsz, UINT64_MAX),
        LIE(segments[NOTE].p_vaddr, UINT64_MAX / 2),
        LIE(dynamic[STRSZ].d_un.d_val, 0),
        LIE(dynamic[STRSZ].d_un.d_val, UINT64_MAX),
        LIE(dynamic[STRSZ].d_un.d_val, PAGES * PAGE_BYTES),
        LIE(hash.buckets, UINT32_MAX),
        LIE(hash.buckets, 1 << 20),
        LIE(hash.blooms, UINT32_MAX),
        LIE(hash.first, UINT32_MAX),
        LIE(hash.bucket[0], UINT32_MAX),
        LIE(hash.bucket[0], 1 << 19),
#undef LIE
    };
    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
        uint64_t truth = 0;
        memcpy(&truth, lies[i].field, lies[i].size);
        memcpy(lies[i].field, &lies[i].lie, lies[i].size);
        if (name_at(0))
            fail_msg("lie %zu was believed", i);
        memcpy(lies[i].field, &truth, lies[i].size);
    }
    static const uint32_t counts[] = {0, UINT32_MAX, 1 << 20, 1 << 10};
    object->dynamic[HASH] = (Elf64_Dyn){DT_HASH, {(uintptr_t)object->old_hash}};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        object->old_hash[1] = counts[i];
        assert_null(name_at(0));
    }
    object->old_hash[1] = SYMBOLS;
    assert_names();
}

/* Reads strings and symbols that lie: no name begins or ends outside of the file. */
static void strings_and_symbols_that_lie_name_nothing(void **state) {
    (void)state;
    object->symbols[2].st_name = UINT32_MAX;
    object->symbols[3].st_name = sizeof object->strings;
    assert_string_equal(name_at(0), "");
    assert_string_equal(name_at(100), "");
    object->symbols[2].st_name = 8;
    memset(object->strings, 'x', sizeof object->strings);
    assert_string_equal(name_at(0), "");
    object->symbols[2].st_value = UINT64_MAX;
    object->symbols[2].st_size = UINT64_MAX;
    object->symbols[3].st_shndx = SHN_UNDEF;
    assert_string_equal(name_at(100), "");
}

/* Looks up an address that only a symbol of data has: it has no name. */
static void data_has_no_names(void **state) {
    (void)state;
    object->symbols[2].st_info = STT_NOTYPE;
    object->symbols[2].st_value = offsetof(struct object, strings);
    assert_string_equal(name_at(offsetof(struct object, strings) - offsetof(struct object, code)),
                        "");
}

static uint32_t hash_of(const char *name) {
    uint32_t hash = 5381;
    for (; *name; name++)
        hash = hash * 33 + (unsigned char)*name;
    return hash;
}

/* Puts both symbols into one chain, which both buckets begin. */
static void make_hash(void) {
    for (int i = 0; i < BUCKETS; i++)
        object->hash.bucket[i] = FIRST_HASHED;
    object->hash.chain[0] = hash_of("first") & ~1u;
    object->hash.chain[1] = hash_of("second") | 1;
}

static void a_symbol_is_found_by_its_name(void **state) {
    (void)state;
    make_hash();
    const uint64_t code = module.load_bias + offsetof(struct object, code);
    assert_int_equal(loaded_image_symbol(&module, "first"), code);
    assert_int_equal(loaded_image_symbol(&module, "second"), code + 100);
    assert_int_equal(loaded_image_symbol(&module, "third"), 0);
    assert_int_equal(loaded_image_symbol(&module, "import"), 0);
    object->symbols[3].st_shndx = SHN_UNDEF;
    assert_int_equal(loaded_image_symbol(&module, "second"), 0);
}

static void a_table_of_hashes_that_lies_finds_nothing(void **state) {
    (void)state;
    make_hash();
    object->hash.chain[1] &= ~1u; /* the chain goes on into memory behind it */
    assert_int_equal(loaded_image_symbol(&module, "third"), 0);
    object->hash.bucket[0] = object->hash.bucket[1] = UINT32_MAX;
    assert_int_equal(loaded_image_symbol(&module, "first"), 0);
    object->hash.bucket[0] = object->hash.bucket[1] = 0;
    assert_int_equal(loaded_image_symbol(&module, "first"), 0);
    make_hash();
    object->symbols[2].st_name = UINT32_MAX;
    assert_int_equal(loaded_image_symbol(&module, "first"), 0);
    object->hash.blooms = UINT32_MAX;
    assert_int_equal(loaded_image_symbol(&module, "second"), 0);
    object->hash.buckets = 0;
    assert_int_equal(loaded_image_symbol(&module, "second"), 0);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, make_object, unmap_object)
    const struct CMUnitTest tests[] = {
        TEST(names_are_read_from_memory),
        TEST(addresses_may_be_the_files),
        TEST(another_object_is_none),
        TEST(an_unmapped_object_has_no_symbols),
        TEST(sizes_that_lie_are_refused),
        TEST(strings_and_symbols_that_lie_name_nothing),
        TEST(data_has_no_names),
        TEST(a_symbol_is_found_by_its_name),
        TEST(a_table_of_hashes_that_lies_finds_nothing),
    };
#undef TEST
    return cmocka_run_group_tests(tests, NULL, NULL);
}
