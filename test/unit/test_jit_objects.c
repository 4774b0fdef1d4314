/* Tests the list of the GDB JIT interface. The test acts as a compiler that reports two functions,
 * and reports lies. */
#include "unit.h"

#include "arch_object.h"
#include "symbolize/jit_objects.h"

#include <elf.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PAGE = 4096 };

static const uint64_t CODE = 0x700000001000;
static const uint64_t LINKED = 0x700000002000;

struct image {
    Elf64_Ehdr head;
    Elf64_Shdr sections[4]; /* empty, code, symbols, names */
    Elf64_Sym symbols[4];
    char names[24];
};

struct entry {
    struct entry *next;
    struct entry *previous;
    const void *file;
    uint64_t size;
};

/* Describes the head of the list: a reader searches modules for the variable of this name. */
struct descriptor {
    uint32_t version;
    uint32_t action;
    struct entry *relevant;
    struct entry *first;
} __jit_debug_descriptor = {.version = 1};

static struct image images[2];
static struct entry entries[2];

static void make_image(struct image *image, uint16_t type, uint64_t address, uint64_t value) {
    *image = (struct image){
        .head = {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB},
                 .e_type = type,
                 .e_machine = ARCH_ELF_MACHINE,
                 .e_shoff = offsetof(struct image, sections),
                 .e_shentsize = sizeof(Elf64_Shdr),
                 .e_shnum = 4},
        .sections = {[1] = {.sh_type = SHT_PROGBITS,
                            .sh_flags = SHF_ALLOC | SHF_EXECINSTR,
                            .sh_addr = address},
                     [2] = {.sh_type = SHT_SYMTAB,
                            .sh_link = 3,
                            .sh_offset = offsetof(struct image, symbols),
                            .sh_size = sizeof image->symbols},
                     [3] = {.sh_type = SHT_STRTAB,
                            .sh_offset = offsetof(struct image, names),
                            .sh_size = sizeof image->names}},
        .symbols = {[1] = {.st_name = 1,
                           .st_info = STT_FUNC,
                           .st_shndx = 1,
                           .st_value = value,
                           .st_size = 16},
                    [2] = {.st_name = 7,
                           .st_info = STT_OBJECT,
                           .st_shndx = 1,
                           .st_value = value + 16,
                           .st_size = 16},
                    [3] = {.st_name = 7,
                           .st_info = STT_FUNC,
                           .st_shndx = 1,
                           .st_value = value + 32,
                           .st_size = 16}},
        .names = "\0first\0second",
    };
}

static int make_list(void **state) {
    (void)state;
    make_image(&images[0], ET_REL, CODE, 0);
    make_image(&images[1], ET_DYN, LINKED, LINKED);
    entries[0] = (struct entry){&entries[1], NULL, &images[0], sizeof images[0]};
    entries[1] = (struct entry){NULL, &entries[0], &images[1], sizeof images[1]};
    __jit_debug_descriptor.version = 1;
    __jit_debug_descriptor.first = &entries[0];
    return 0;
}

static bool read_list(struct jit_objects *objects) {
    jit_objects_forget(objects);
    return jit_objects_read_list(objects, (uintptr_t)&__jit_debug_descriptor);
}

static const char *name_at(struct jit_objects *objects, uint64_t address) {
    const char *const name = jit_objects_find(objects, address);
    return name ? name : "";
}

static void functions_of_objects_have_names(void **state) {
    (void)state;
    struct jit_objects objects = {0};
    assert_true(read_list(&objects));
    assert_string_equal(name_at(&objects, CODE), "first");
    assert_string_equal(name_at(&objects, CODE + 15), "first");
    assert_string_equal(name_at(&objects, CODE + 16), ""); /* data */
    assert_string_equal(name_at(&objects, CODE + 47), "second");
    assert_string_equal(name_at(&objects, LINKED), "first");
    assert_string_equal(name_at(&objects, 2 * LINKED), "");
    jit_objects_close(&objects);
}

static void code_that_is_gone_has_none(void **state) {
    (void)state;
    struct jit_objects objects = {0};
    assert_true(read_list(&objects));
    __jit_debug_descriptor.first = &entries[1];
    assert_true(read_list(&objects));
    assert_string_equal(name_at(&objects, CODE), "");
    assert_string_equal(name_at(&objects, LINKED), "first");
    jit_objects_close(&objects);
}

static void a_list_in_a_circle_ends(void **state) {
    (void)state;
    struct jit_objects objects = {0};
    entries[1].next = &entries[0];
    assert_false(read_list(&objects));
    assert_string_equal(name_at(&objects, CODE), "first");
    jit_objects_close(&objects);
}

/* Lists 8,192 times a thousand tables of 4 MiB without a function's symbol: without a bound on all
 * that is read, this takes hours. */
static void objects_are_read_up_to_a_size(void **state) {
    (void)state;
    enum { TABLES = 1000, TABLE = 4 << 20 };
    struct jit_objects objects = {0};
    const size_t size = sizeof(Elf64_Ehdr) + TABLES * sizeof(Elf64_Shdr) + TABLE;
    char *const bytes = calloc(1, size);
    assert_non_null(bytes);
    Elf64_Ehdr *const head = (void *)bytes;
    Elf64_Shdr *const sections = (void *)(head + 1);
    *head = images[0].head;
    head->e_shoff = sizeof *head;
    head->e_shnum = TABLES;
    for (int i = 0; i < TABLES; i++)
        sections[i] = (Elf64_Shdr){.sh_type = SHT_SYMTAB,
                                   .sh_link = (uint32_t)i,
                                   .sh_offset = size - TABLE,
                                   .sh_size = TABLE};
    entries[1] = (struct entry){&entries[1], NULL, bytes, size};
    assert_false(read_list(&objects));
    assert_string_equal(name_at(&objects, CODE), "first"); /* the list before this one */
    make_list(NULL);
    assert_true(read_list(&objects)); /* the next call reads the list again */
    assert_string_equal(name_at(&objects, LINKED), "first");
    jit_objects_close(&objects);
    free(bytes);
}

/* Changes bytes of the list: the reader never ends the process, and never reads unmapped memory. */
static void a_list_that_lies_names_nothing(void **state) {
    (void)state;
    struct jit_objects objects = {0};
    char *const pages =
        mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(pages != MAP_FAILED && munmap(pages + PAGE, PAGE) == 0);
    struct image *const edge = (struct image *)(void *)(pages + PAGE) - 1;
    uint8_t *const bytes = (uint8_t *)edge;
    entries[0].file = edge;
    for (size_t i = 0; i < sizeof *edge; i++)
        for (int value = 0; value < 256; value += 51) {
            *edge = images[0];
            bytes[i] = (uint8_t)value;
            assert_true(read_list(&objects));
            assert_string_equal(name_at(&objects, LINKED), "first");
        }
    entries[0].size = sizeof images[0] + 1000000;
    edge->sections[3].sh_size = 1000000;
    assert_true(read_list(&objects));
    entries[0].file = pages + PAGE - 8;
    assert_true(read_list(&objects));
    assert_string_equal(name_at(&objects, LINKED), "first");
    entries[0].next = (struct entry *)(void *)(pages + PAGE);
    assert_true(read_list(&objects));
    __jit_debug_descriptor.version = 2;
    assert_true(read_list(&objects));
    assert_string_equal(name_at(&objects, LINKED), "");
    munmap(pages, PAGE);
    jit_objects_close(&objects);
}

static int find_program(struct dl_phdr_info *info, size_t size, void *arg) {
    struct harvest_module *const module = arg;
    (void)size;
    module->load_bias = info->dlpi_addr;
    module->start = UINT64_MAX;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const uint64_t start = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
        if (info->dlpi_phdr[i].p_type == PT_LOAD && start < module->start)
            module->start = start;
        if (info->dlpi_phdr[i].p_type == PT_LOAD && info->dlpi_phdr[i].p_flags & PF_X)
            module->text_start = start;
    }
    return 1;
}

/* Finds a list that is in no table of exports, as in a library that has LLVM in it. */
static void the_list_is_found_in_a_module(void **state) {
    (void)state;
    static char path[4096];
    struct jit_objects objects = {0};
    struct harvest_module modules[2] = {{.path = "/nowhere", .start = 4096}, {.path = path}};
    assert_true(readlink("/proc/self/exe", path, sizeof path - 1) > 0);
    dl_iterate_phdr(find_program, &modules[1]);
    assert_true(jit_objects_read(&objects, modules, 2));
    assert_string_equal(name_at(&objects, CODE), "first");
    __jit_debug_descriptor.first = NULL; /* the list is not searched for again */
    strcpy(path, "/nowhere");
    assert_true(jit_objects_read(&objects, modules, 2));
    assert_string_equal(name_at(&objects, CODE), "");
    __jit_debug_descriptor.first = &entries[1];
    assert_true(jit_objects_read(&objects, modules, 2));
    assert_string_equal(name_at(&objects, LINKED), "first");
    jit_objects_close(&objects);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(functions_of_objects_have_names, make_list),
        cmocka_unit_test_setup(code_that_is_gone_has_none, make_list),
        cmocka_unit_test_setup(a_list_in_a_circle_ends, make_list),
        cmocka_unit_test_setup(objects_are_read_up_to_a_size, make_list),
        cmocka_unit_test_setup(a_list_that_lies_names_nothing, make_list),
        cmocka_unit_test_setup(the_list_is_found_in_a_module, make_list),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
