/* Tests that the reader checks a file's claims against the possible before it spends memory or
 * time. */
#include "unit.h"

#include "symbolize/elf_file.h"
#include "symbolize/symbol_table.h"

#include <fcntl.h>
#include <malloc.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

enum { FUNCTIONS = 3, MANY = 1000, CONTENT_BYTES = 64 << 10, TEXT = 1, STRINGS, TABLE, EXTRA };

/* Holds a file in memory, as small as possible: an executable section, three functions, and a
 * section, `EXTRA`, that tests fill as they like. */
struct file {
    Elf64_Ehdr header;
    Elf64_Sym symbols[FUNCTIONS + 1];
    char content[CONTENT_BYTES];
    Elf64_Shdr sections[MANY];
};

static struct file *file;
static struct elf_file opened;
static struct symbol_table table;

static int make_file(void **state) {
    (void)state;
    file = calloc(1, sizeof *file);
    memcpy(file->header.e_ident, ELFMAG, SELFMAG);
    file->header.e_ident[EI_CLASS] = ELFCLASS64;
    file->header.e_ident[EI_DATA] = ELFDATA2LSB;
    file->header.e_shoff = offsetof(struct file, sections);
    file->header.e_shentsize = sizeof(Elf64_Shdr);
    file->header.e_shnum = EXTRA + 1;
    file->header.e_shstrndx = STRINGS;
    memcpy(file->content, "\0one\0two\0.debug_info\0three", 26);
    for (uint32_t i = 1; i <= FUNCTIONS; i++)
        file->symbols[i] = (Elf64_Sym){.st_name = (uint32_t[]){0, 1, 5, 21}[i],
                                       .st_info = STT_FUNC,
                                       .st_shndx = TEXT,
                                       .st_value = 16 * i,
                                       .st_size = 16};
    file->sections[TEXT] =
        (Elf64_Shdr){.sh_type = SHT_NOBITS, .sh_flags = SHF_EXECINSTR | SHF_ALLOC, .sh_size = 4096};
    file->sections[STRINGS] = (Elf64_Shdr){
        .sh_type = SHT_STRTAB, .sh_offset = offsetof(struct file, content), .sh_size = 27};
    file->sections[TABLE] = (Elf64_Shdr){.sh_type = SHT_SYMTAB,
                                         .sh_link = STRINGS,
                                         .sh_offset = offsetof(struct file, symbols),
                                         .sh_size = sizeof file->symbols,
                                         .sh_entsize = sizeof(Elf64_Sym)};
    return 0;
}

static int forget_file(void **state) {
    (void)state;
    symbol_table_free(&table);
    elf_file_close(&opened);
    free(file);
    return 0;
}

/* Opens a copy of the file's bytes, which the opener owns, with `more` zeros after them. Returns
 * false if the file is refused. */
static bool opens_with(size_t more) {
    void *const bytes = calloc(1, sizeof *file + more);
    memcpy(bytes, file, sizeof *file);
    symbol_table_free(&table);
    elf_file_close(&opened);
    elf_file_init(&opened);
    if (!elf_sections_of_memory(&opened.parts[PART_MAIN], bytes, sizeof *file + more))
        return false;
    symbol_table_load(&table, &opened);
    return true;
}

static bool opens(void) {
    return opens_with(0);
}

static const char *name_of(uint64_t number) {
    static char name[MAX_SYMBOL_NAME];
    struct symbol symbol;
    return symbol_table_find(&table, &opened, 16 * number + 3, &symbol) &&
                   symbol_table_name(&table, &symbol, &opened, name)
               ? name
               : "";
}

static void what_is_in_order_is_read(void **state) {
    (void)state;
    assert_true(opens());
    assert_int_equal(table.count, FUNCTIONS);
    assert_string_equal(name_of(1), "one");
    assert_string_equal(name_of(2), "two");
    assert_string_equal(name_of(3), "three");
    assert_string_equal(name_of(4), "");
}

static void one_symbol_table_is_read_once(void **state) {
    (void)state;
    for (int i = EXTRA; i < MANY; i++)
        file->sections[i] = file->sections[TABLE];
    file->header.e_shnum = MANY;
    assert_true(opens());
    assert_int_equal(table.count, FUNCTIONS);
    assert_int_equal(symbol_table_bytes(&opened), (FUNCTIONS + 1) * sizeof *table.index);
}

enum { LARGE = 1500000, STEP = 7919 /* no divisor of LARGE */, LOOKED_UP = 1000 };

/* Makes a table of LARGE - 1 functions, in no order, and describes it in the section headers. The
 * caller frees the table. */
static Elf64_Sym *many_symbols(void) {
    Elf64_Sym *const symbols = calloc(LARGE, sizeof *symbols);
    assert_non_null(symbols);
    for (uint64_t i = 1; i < LARGE; i++)
        symbols[i * STEP % LARGE] = (Elf64_Sym){
            .st_name = 5, .st_info = STT_FUNC, .st_shndx = TEXT, .st_value = 16 * i, .st_size = 8};
    file->sections[TEXT].sh_size = 16 * (uint64_t)LARGE;
    file->sections[TABLE].sh_size = LARGE * sizeof *symbols;
    return symbols;
}

static void expect_every_name(void) {
    assert_int_equal(table.count, LARGE - 1);
    for (uint64_t i = 1; i < LARGE; i += LARGE / LOOKED_UP) {
        struct symbol symbol;
        assert_string_equal(name_of(i), "two");
        assert_false(symbol_table_find(&table, &opened, 16 * i + 8, &symbol));
    }
}

static size_t used_bytes(void) {
    const struct mallinfo2 info = mallinfo2();
    return info.uordblks + info.hblkhd;
}

static void more_than_a_million_symbols_have_their_names(void **state) {
    (void)state;
    Elf64_Sym *const symbols = many_symbols();
    file->sections[TABLE].sh_offset = sizeof *file;
    char *const bytes = malloc(sizeof *file + file->sections[TABLE].sh_size);
    assert_non_null(bytes);
    memcpy(bytes, file, sizeof *file);
    memcpy(bytes + sizeof *file, symbols, file->sections[TABLE].sh_size);
    free(symbols);
    assert_true(elf_sections_of_memory(&opened.parts[PART_MAIN], bytes,
                                       sizeof *file + file->sections[TABLE].sh_size));
    const size_t used = used_bytes();
    symbol_table_load(&table, &opened);
    assert_true(used_bytes() <= used + LARGE * sizeof *table.index + 4096);
    expect_every_name();
}

/* Puts the table of symbols and the headers beyond 2 GiB, where debug information takes the
 * rest. */
static void a_program_of_two_gigabytes_has_names(void **state) {
    (void)state;
    static const uint64_t place = (uint64_t)21 << 27;
    char path[] = "/tmp/otelprof-large-XXXXXX";
    bool compressed;
    const int descriptor = mkstemp(path);
    assert_true(descriptor >= 0 && unlink(path) == 0);
    Elf64_Sym *const symbols = many_symbols();
    const size_t size = file->sections[TABLE].sh_size;
    file->sections[TABLE].sh_offset = place;
    file->sections[EXTRA] = (Elf64_Shdr){
        .sh_name = 9, .sh_type = SHT_PROGBITS, .sh_offset = sizeof *file, .sh_size = 2U << 30};
    file->header.e_shoff = place + size;
    assert_int_equal(pwrite(descriptor, file, sizeof *file, 0), sizeof *file);
    assert_int_equal(pwrite(descriptor, symbols, size, (off_t)place), size);
    assert_int_equal(
        pwrite(descriptor, file->sections, sizeof file->sections, (off_t)(place + size)),
        sizeof file->sections);
    free(symbols);
    assert_true(elf_sections_open(&opened.parts[PART_MAIN], descriptor));
    const size_t used = used_bytes();
    symbol_table_load(&table, &opened);
    assert_int_equal(elf_file_dwarf_bytes(&opened, &compressed), 0);
    assert_true(used_bytes() <= used + LARGE * sizeof *table.index + 4096);
    expect_every_name();
}

static void sections_without_number_are_not_looked_at(void **state) {
    (void)state;
    file->header.e_shnum = 60000; /* more headers than there are bytes for */
    assert_false(opens());
    file->header.e_shnum = 1025;
    file->header.e_shoff = 0; /* there are bytes for so many headers */
    assert_false(opens());
    file->header.e_shnum = 0;
    assert_false(opens());
}

static void a_name_that_does_not_end_is_none(void **state) {
    (void)state;
    memset(file->content + 21, 'x', CONTENT_BYTES - 21);
    assert_true(opens());
    assert_string_equal(name_of(1), "one");
    assert_string_equal(name_of(3), "");
    file->sections[STRINGS].sh_size = CONTENT_BYTES; /* the string ends, but is too long */
    file->content[21 + MAX_SYMBOL_NAME] = 0;
    assert_true(opens());
    assert_string_equal(name_of(3), "");
    file->content[21 + MAX_SYMBOL_NAME - 1] = 0;
    assert_true(opens());
    assert_int_equal(strlen(name_of(3)), MAX_SYMBOL_NAME - 1);
}

static void tables_beyond_the_file_or_too_large_are_not_read(void **state) {
    (void)state;
    static const uint64_t sizes[] = {sizeof *file, UINT64_MAX, 25 << 20};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        file->sections[TABLE].sh_size = sizes[i];
        assert_true(opens());
        assert_int_equal(table.count, 0);
    }
    file->sections[TABLE].sh_size = sizeof file->symbols;
    file->sections[TABLE].sh_offset = UINT64_MAX - 8;
    assert_true(opens());
    assert_int_equal(table.count, 0);
}

enum { PACKED_AT = 1024, ZDEBUG_HEAD = 12, ZSTD = 2 };

/* Adds compressed debug information of `packed` bytes that claims to become `size` bytes. */
static void claim_as(uint32_t type, size_t packed, uint64_t size) {
    Elf64_Chdr *const header = (Elf64_Chdr *)(void *)(file->content + PACKED_AT);
    *header = (Elf64_Chdr){.ch_type = type, .ch_size = size};
    file->sections[EXTRA] = (Elf64_Shdr){.sh_name = 9,
                                         .sh_type = SHT_PROGBITS,
                                         .sh_flags = SHF_COMPRESSED,
                                         .sh_offset = offsetof(struct file, content) + PACKED_AT,
                                         .sh_size = sizeof *header + packed};
}

static void claim(size_t packed, uint64_t size) {
    claim_as(ELFCOMPRESS_ZLIB, packed, size);
}

/* Adds such debug information in the form of old linkers. */
static void claim_zdebug(size_t packed, uint64_t size) {
    char *const head = file->content + PACKED_AT;
    memcpy(file->content + 200, ".zdebug_info", 13);
    memcpy(head, "ZLIB", 4);
    for (int i = 0; i < 8; i++)
        head[4 + i] = (char)(size >> (56 - 8 * i));
    file->sections[STRINGS].sh_size = 220;
    file->sections[EXTRA] = (Elf64_Shdr){.sh_name = 200,
                                         .sh_type = SHT_PROGBITS,
                                         .sh_offset = offsetof(struct file, content) + PACKED_AT,
                                         .sh_size = ZDEBUG_HEAD + packed};
}

static uint64_t dwarf_bytes(void) {
    bool compressed;
    assert_true(opens());
    return elf_file_dwarf_bytes(&opened, &compressed);
}

static void what_claims_to_be_inflated_without_measure_is_not(void **state) {
    (void)state;
    claim(100, 100);
    assert_int_not_equal(dwarf_bytes(), 0);
    claim(100, 100 * 1040);
    assert_int_equal(dwarf_bytes(), 0);
    static const uint64_t sizes[] = {UINT64_MAX, (uint64_t)1 << 60, 128 << 20};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        claim(100, sizes[i]);
        assert_int_equal(dwarf_bytes(), 0);
        claim_as(ZSTD, 100, sizes[i]);
        assert_int_equal(dwarf_bytes(), 0);
        claim_zdebug(100, sizes[i]);
        assert_int_equal(dwarf_bytes(), 0);
    }
    claim_as(ZSTD, 100, 100 * 1040);
    assert_int_not_equal(dwarf_bytes(), 0);
    claim_as(ZSTD + 1, 100, 100);
    assert_int_equal(dwarf_bytes(), 0);
    claim_zdebug(100, 100);
    assert_int_not_equal(dwarf_bytes(), 0);
    file->content[PACKED_AT] = 'z';
    assert_int_equal(dwarf_bytes(), 0);
}

static void too_much_debug_information_is_not_read(void **state) {
    (void)state;
    bool compressed;
    const size_t size = (size_t)127 << 20;
    file->sections[EXTRA] = (Elf64_Shdr){.sh_name = 9, .sh_type = SHT_PROGBITS, .sh_size = size};
    assert_true(opens_with(2 * size));
    assert_true(elf_file_dwarf_bytes(&opened, &compressed) >= size);
    file->sections[EXTRA].sh_size = size + (1 << 20);
    assert_true(opens_with(2 * size));
    assert_int_equal(elf_file_dwarf_bytes(&opened, &compressed), 0);
}

static size_t pack_by_zlib(uint8_t *to, const uint8_t *plain, size_t size) {
    uLongf packed = CONTENT_BYTES / 2;
    assert_int_equal(compress(to, &packed, plain, size), Z_OK);
    return packed;
}

static size_t pack_by_zstd(uint8_t *to, const uint8_t *plain, size_t size) {
    const size_t packed = ZSTD_compress(to, CONTENT_BYTES / 2, plain, size, 3);
    assert_false(ZSTD_isError(packed));
    return packed;
}

static void claim_zstd(size_t packed, uint64_t size) {
    claim_as(ZSTD, packed, size);
}

static const struct form {
    size_t head;
    size_t (*pack)(uint8_t *to, const uint8_t *plain, size_t size);
    void (*claim)(size_t packed, uint64_t size);
} forms[] = {
    {sizeof(Elf64_Chdr), pack_by_zlib, claim},
    {sizeof(Elf64_Chdr), pack_by_zstd, claim_zstd},
    {ZDEBUG_HEAD, pack_by_zlib, claim_zdebug},
};

/* Reads the section as its header describes it now. */
static bool inflates_to(const uint8_t *plain, size_t size) {
    uint8_t out[1024];
    assert_true(opens());
    const struct elf_sections *const main = &opened.parts[PART_MAIN];
    const Elf64_Shdr *const section = elf_section_named(main, ".debug_info");
    const uint64_t claimed = elf_section_size(main, section);
    assert_true(claimed <= sizeof out);
    return claimed && elf_section_read(main, section, out, claimed) &&
           memcmp(out, plain, size < claimed ? size : claimed) == 0;
}

static void a_size_that_lies_inflates_to_nothing(void **state) {
    (void)state;
    const uint8_t plain[1000] = "debug information";
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        const struct form *const form = &forms[i];
        uint8_t *const to = (uint8_t *)file->content + PACKED_AT + form->head;
        const size_t packed = form->pack(to, plain, sizeof plain);
        form->claim(packed, sizeof plain + 1);
        assert_false(inflates_to(plain, sizeof plain));
        form->claim(packed - 1, sizeof plain); /* the data ends early */
        assert_true(form->pack == pack_by_zlib || !inflates_to(plain, sizeof plain));
        form->claim(packed, sizeof plain);
        assert_true(inflates_to(plain, sizeof plain));
    }
}

/* --- a debug file of holes --- */

static char folder[64];

static void shell(const char *text) {
    char command[1024];
    snprintf(command, sizeof command, "cd %s && %s", folder, text);
    if (system(command) != 0)
        fail_msg("failed: %s", command);
}

static bool finds_debug_file(const char *module_name) {
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, module_name);
    const struct harvest_module module = {.path = path};
    elf_file_close(&opened);
    assert_true(elf_file_open(&opened, &module));
    elf_file_open_debug_files(&opened, &module);
    return elf_sections_are_open(&opened.parts[PART_DEBUG]);
}

/* Makes a file whose sums agree: it is refused for its holes, or for its size. */
static void a_debug_file_of_holes_costs_nothing(void **state) {
    (void)state;
    strcpy(folder, "/tmp/otelprof-bounds-XXXXXX");
    assert_non_null(mkdtemp(folder));
    shell(
        "echo 'void f(void) {}' | gcc -g -shared -fPIC -Wl,--build-id=none -xc -o full.so - && "
        "objcopy --only-keep-debug full.so small.debug && strip full.so && "
        "for size in 64M 200M; do cp small.debug $size.debug; truncate -s $size $size.debug; done");
    shell("for name in small 64M 200M; do "
          "objcopy --add-gnu-debuglink=$name.debug full.so $name.so; done");
    assert_true(finds_debug_file("small.so"));
    assert_false(finds_debug_file("64M.so"));
    assert_false(finds_debug_file("200M.so"));
    shell("rm -r $PWD");
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, make_file, forget_file)
    const struct CMUnitTest tests[] = {
        TEST(what_is_in_order_is_read),
        TEST(one_symbol_table_is_read_once),
        TEST(more_than_a_million_symbols_have_their_names),
        TEST(a_program_of_two_gigabytes_has_names),
        TEST(sections_without_number_are_not_looked_at),
        TEST(a_name_that_does_not_end_is_none),
        TEST(tables_beyond_the_file_or_too_large_are_not_read),
        TEST(what_claims_to_be_inflated_without_measure_is_not),
        TEST(too_much_debug_information_is_not_read),
        TEST(a_size_that_lies_inflates_to_nothing),
        TEST(a_debug_file_of_holes_costs_nothing),
    };
#undef TEST
    elf_file_init(&opened);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
