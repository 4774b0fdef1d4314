/* Tests debug information that is read one unit at a time: the names are those of a whole read, and
 * units that no address needs take no memory. */
#include "unit.h"

#include "symbol_files.h"
#include "symbolize/dwarf_lines.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <zlib.h>

/* --- parts of a section --- */

enum { SECTION_BYTES = (4 << 20) + 123, PIECE = 5000 };

static uint8_t plain[SECTION_BYTES];
static uint8_t *read_to;

/* Makes an ELF file of one compressed section, in memory. */
static void make_section(struct elf_sections *sections) {
    uLongf packed = compressBound(sizeof plain);
    const size_t start = sizeof(Elf64_Ehdr) + 2 * sizeof(Elf64_Shdr);
    uint8_t *const bytes = calloc(1, start + sizeof(Elf64_Chdr) + packed);
    for (size_t i = 0; i < sizeof plain; i++)
        plain[i] = (uint8_t)(i % 7 ? i >> 8 : (i * 2654435761U) >> 13);
    *(Elf64_Chdr *)(void *)(bytes + start) =
        (Elf64_Chdr){.ch_type = ELFCOMPRESS_ZLIB, .ch_size = sizeof plain};
    assert_int_equal(compress(bytes + start + sizeof(Elf64_Chdr), &packed, plain, sizeof plain),
                     Z_OK);
    *(Elf64_Ehdr *)(void *)bytes = (Elf64_Ehdr){
        .e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
        .e_shoff = sizeof(Elf64_Ehdr),
        .e_shentsize = sizeof(Elf64_Shdr),
        .e_shnum = 2};
    ((Elf64_Shdr *)(void *)(bytes + sizeof(Elf64_Ehdr)))[1] =
        (Elf64_Shdr){.sh_type = SHT_PROGBITS,
                     .sh_flags = SHF_COMPRESSED,
                     .sh_offset = start,
                     .sh_size = sizeof(Elf64_Chdr) + packed};
    assert_true(elf_sections_of_memory(sections, bytes, start + sizeof(Elf64_Chdr) + packed));
}

static void open_parts(struct section_parts *parts, struct elf_sections *sections) {
    make_section(sections);
    read_to = mmap(NULL, SECTION_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(read_to, MAP_FAILED);
    assert_true(section_parts_open(parts, sections, &sections->headers[1], read_to, SECTION_BYTES));
}

static void close_parts(struct section_parts *parts, struct elf_sections *sections) {
    section_parts_close(parts);
    elf_sections_close(sections);
    munmap(read_to, SECTION_BYTES);
}

static void expect_part(struct section_parts *parts, uint64_t at, uint64_t size) {
    assert_true(section_parts_need(parts, at, size));
    assert_memory_equal(read_to + at, plain + at, size);
}

static void parts_may_be_read_in_any_order(void **state) {
    (void)state;
    struct section_parts parts;
    struct elf_sections sections;
    open_parts(&parts, &sections);
    expect_part(&parts, 3 << 20, PIECE);
    expect_part(&parts, 17, PIECE);
    expect_part(&parts, (3 << 20) - PIECE, 2 * PIECE);
    expect_part(&parts, SECTION_BYTES - 1, 1);
    expect_part(&parts, (1 << 20) - 1, 3);
    expect_part(&parts, SECTION_BYTES, 0);
    assert_int_equal(read_to[2 << 20], 0); /* not requested */
    assert_false(section_parts_need(&parts, SECTION_BYTES, 1));
    assert_false(section_parts_need(&parts, 1, UINT64_MAX));
    close_parts(&parts, &sections);
}

static void inflated_parts_are_not_read_again(void **state) {
    (void)state;
    struct section_parts parts;
    struct elf_sections sections;
    open_parts(&parts, &sections);
    expect_part(&parts, 1 << 20, PIECE);
    const uint64_t inflated = parts.inflated;
    read_to[1 << 20] ^= 1;
    assert_true(section_parts_need(&parts, 1 << 20, PIECE));
    assert_int_equal(parts.inflated, inflated);
    assert_true(section_parts_need(&parts, 0, SECTION_BYTES));
    assert_int_equal(read_to[1 << 20], plain[1 << 20] ^ 1);
    close_parts(&parts, &sections);
}

static void many_parts_cost_no_more_than_a_few_times_the_section(void **state) {
    (void)state;
    struct section_parts parts;
    struct elf_sections sections;
    open_parts(&parts, &sections);
    for (uint64_t i = 1; i <= 400; i++) /* backwards, one part at a time */
        expect_part(&parts, SECTION_BYTES - i * SECTION_BYTES / 400, 1);
    assert_true(parts.inflated < 4 * (uint64_t)SECTION_BYTES);
    close_parts(&parts, &sections);
}

static void a_part_that_cannot_be_inflated_is_none(void **state) {
    (void)state;
    struct section_parts parts;
    struct elf_sections sections;
    open_parts(&parts, &sections);
    memset(sections.memory + sections.headers[1].sh_offset + sections.headers[1].sh_size / 2, 0xff,
           1000);
    expect_part(&parts, 0, PIECE);
    assert_false(section_parts_need(&parts, SECTION_BYTES - 1, 1));
    close_parts(&parts, &sections);
}

/* --- units --- */

enum { UNITS = 20, STEP = 4, LINES = 16 };

/* Makes many units, linked by `how`; each has a function that another is inlined into. */
static void make_units(const char *name, const char *how) {
    shell("for i in $(seq %d); do printf 'struct s%%d { int a_long_name_%%d; };\\n"
          "volatile int sink%%d;\\nstatic inline int in%%d(int a) { return a * %%d + sink%%d; }\\n"
          "int unit%%d(struct s%%d *s) { return in%%d(s->a_long_name_%%d) / 3; }\\n'"
          " $i $i $i $i $i $i $i $i $i $i > u$i.c; done",
          UNITS);
    shell("for i in $(seq %d); do echo \"int unit$i(void *);\"; done > all.c && "
          "(echo 'int all(void *p) { return 0'; for i in $(seq %d); do echo \"+ unit$i(p)\"; done; "
          "echo ';}') >> all.c && gcc -O1 -g -shared -fPIC %s -o %s all.c u[0-9]*.c",
          UNITS, UNITS, how, name);
}

struct opened {
    struct elf_sections sections;
    struct debug_image image;
    struct dwarf_functions *functions;
};

static void open_units(struct opened *opened, const char *name, bool as_whole) {
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    assert_true(elf_sections_open(&opened->sections, open(path, O_RDONLY)));
    assert_true(debug_image_open(&opened->image, &opened->sections));
    assert_true(!as_whole || debug_image_whole(&opened->image));
    opened->functions = dwarf_functions_open(&opened->image);
    assert_non_null(opened->functions);
}

static void close_units(struct opened *opened) {
    dwarf_functions_close(opened->functions);
    debug_image_close(&opened->image);
    elf_sections_close(&opened->sections);
}

static void expect_equal(const struct symbol_line *line, const struct symbol_line *other) {
    assert_string_equal(line->system_name, other->system_name);
    assert_string_equal(line->file, other->file);
    assert_int_equal(line->line, other->line);
    assert_int_equal(line->start_line, other->start_line);
}

/* Compares all code of the units, backwards. Returns the number of addresses with lines. */
static unsigned expect_equal_lines(struct opened *one, struct opened *other, uint64_t begin,
                                   uint64_t end) {
    unsigned found = 0;
    for (uint64_t at = end; at > begin; at -= STEP) {
        struct symbol_line lines[2][LINES];
        bool partial[2] = {false, false};
        const size_t count = dwarf_lines(one->functions, at - STEP, lines[0], LINES, &partial[0]);
        assert_int_equal(dwarf_lines(other->functions, at - STEP, lines[1], LINES, &partial[1]),
                         count);
        assert_int_equal(partial[0], partial[1]);
        for (size_t i = 0; i < count; i++)
            expect_equal(&lines[0][i], &lines[1][i]);
        found += count > 0;
    }
    return found;
}

/* Compiles the units with the options `how`, and compares their lines, read unit by unit, with
 * those of the whole file. Returns true if reading by units ended in reading the whole file. */
static bool is_read_as_a_whole(const char *how) {
    struct opened whole;
    struct opened opened;
    make_units("units.so", how);
    open_units(&whole, "units.so", true);
    open_units(&opened, "units.so", false);
    const uint64_t first = address_of("units.so", "unit1");
    const uint64_t last = address_of("units.so", "unit9"); /* in the order of the files' names */
    assert_true(first < last);
    assert_true(expect_equal_lines(&opened, &whole, first, last) > UNITS);
    const bool is_whole = opened.image.whole.dwarf != NULL;
    assert_true(is_whole || opened.image.unit_count > UNITS / 2);
    close_units(&opened);
    close_units(&whole);
    return is_whole;
}

static void a_unit_alone_has_the_lines_of_the_whole(void **state) {
    (void)state;
    assert_false(is_read_as_a_whole("-falign-functions=4"));
    assert_false(is_read_as_a_whole("-falign-functions=4 -gz=zlib"));
    assert_false(is_read_as_a_whole("-falign-functions=4 -gdwarf-4"));
}

static void units_that_lead_into_others_are_read_with_them(void **state) {
    (void)state;
    assert_true(is_read_as_a_whole("-flto -fno-ipa-icf"));
    assert_true(is_read_as_a_whole("-gdwarf-4 -fdebug-types-section"));
}

/* Holds the last range of memory for which huge pages were turned off. */
static struct {
    const uint8_t *without_huge_pages;
    size_t size;
} advised;

int madvise(void *address, size_t size, int advice) {
    if (advice == MADV_NOHUGEPAGE) {
        advised.without_huge_pages = address;
        advised.size = size;
    }
    return (int)syscall(SYS_madvise, address, size, advice);
}

/* Where huge pages are always on, each byte that is read would take a page of 2 MiB. */
static void the_image_takes_no_huge_pages(void **state) {
    (void)state;
    struct opened opened;
    shell("echo 'int small(int a) { return a / 3; }' > small.c && "
          "gcc -O1 -g -shared -fPIC -o small.so small.c");
    open_units(&opened, "small.so", false);
    assert_ptr_equal(advised.without_huge_pages, opened.image.bytes);
    assert_int_equal(advised.size, opened.image.size);
    close_units(&opened);
}

/* Returns the size of the image's pages that are in memory, as the kernel reports it. */
static size_t resident_bytes(const struct debug_image *image) {
    unsigned char pages[4096];
    size_t resident = 0;
    assert_true(image->size <= sizeof pages * 4096);
    assert_int_equal(mincore(image->bytes, image->size, pages), 0);
    for (size_t i = 0; i < image->size; i += 4096)
        resident += (pages[i / 4096] & 1) * 4096U;
    return resident;
}

static void unused_units_take_no_memory(void **state) {
    (void)state;
    struct opened opened;
    struct symbol_line lines[LINES];
    bool partial = false;
    shell(
        "for i in $(seq 30000); do echo \"struct a_long_name_$i { int member_$i[$i]; };\"; done > "
        "large.c && echo 'int large(int a) { return a / 3; }' >> large.c && "
        "gcc -O1 -g -fno-eliminate-unused-debug-types -fPIC -c large.c && "
        "for i in 1 2 3 4; do objcopy --redefine-sym large=large$i large.o large$i.o; done && "
        "gcc -shared -gz=zlib -o large.so large?.o");
    open_units(&opened, "large.so", false);
    const uint64_t address = address_of("large.so", "large3");
    assert_int_equal(dwarf_lines(opened.functions, address, lines, LINES, &partial), 1);
    assert_string_equal(lines[0].system_name, "large");
    assert_int_equal(lines[0].line, 30001);
    assert_null(opened.image.whole.dwarf);
    assert_true(opened.image.size > 6 << 20);
    assert_true(resident_bytes(&opened.image) < opened.image.size / 2);
    close_units(&opened);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_may_be_read_in_any_order),
        cmocka_unit_test(inflated_parts_are_not_read_again),
        cmocka_unit_test(many_parts_cost_no_more_than_a_few_times_the_section),
        cmocka_unit_test(a_part_that_cannot_be_inflated_is_none),
        cmocka_unit_test(a_unit_alone_has_the_lines_of_the_whole),
        cmocka_unit_test(units_that_lead_into_others_are_read_with_them),
        cmocka_unit_test(the_image_takes_no_huge_pages),
        cmocka_unit_test(unused_units_take_no_memory),
    };
    return cmocka_run_group_tests(tests, make_files, remove_files);
}
