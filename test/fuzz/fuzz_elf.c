/* Fuzzes a file that is read for symbols: whatever it claims, the reading is bounded, and every
 * name ends. */
#include "budget.h"

#include "symbolize/elf_file.h"
#include "symbolize/function_extent.h"
#include "symbolize/symbol_table.h"

enum { SOME_SYMBOLS = 64 };

static const double most_seconds = 1;
/* Bounds memory beside the input: tables, the xz of minidebug, and inflated sections. */
static const size_t most_bytes = (size_t)160 << 20;

static void read_names(const struct elf_file *file, size_t size) {
    struct symbol_table table = {0};
    char name[MAX_SYMBOL_NAME];
    symbol_table_load(&table, file);
    promise(table.count <= 4 * (size + (1 << 20)) / sizeof(Elf64_Sym) ||
            elf_sections_are_open(&file->parts[PART_MINIDEBUG]));
    for (size_t i = 0; i < table.count && i < SOME_SYMBOLS; i++) {
        struct symbol found;
        const uint64_t address = symbol_table_start(&table, i);
        const bool covered = symbol_table_find(&table, file, address, &found);
        uint64_t start;
        uint64_t end;
        if (function_extent(&file->parts[PART_MAIN], address, &start, &end))
            promise(start <= address && address < end);
        promise(!covered || (found.start <= address && address < found.end));
        if (covered && symbol_table_name(&table, &found, file, name))
            promise(name[0] && strlen(name) < MAX_SYMBOL_NAME);
        promise(i == 0 || symbol_table_start(&table, i - 1) <= address);
    }
    struct symbol last;
    promise(!symbol_table_find(&table, file, UINT64_MAX, &last) || last.start <= UINT64_MAX);
    symbol_table_free(&table);
}

static void read_sections(const struct elf_sections *sections) {
    size_t size;
    bool compressed;
    uint8_t id[64];
    promise(elf_sections_build_id(sections, id) <= sizeof id);
    (void)debug_image_bytes(sections, &compressed);
    for (uint32_t i = 0; i < sections->count && i < SOME_SYMBOLS; i++)
        free(elf_section_copy(sections, &sections->headers[i], 1 << 20, &size));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct input input = {data, size};
    struct elf_file file;
    const struct harvest_module module = {.path = "/nowhere/library.so"};
    const struct budget budget = budget_begin(most_seconds, most_bytes);
    uint8_t *const bytes = take_rest(&input, &size);
    elf_file_init(&file);
    if (elf_sections_of_memory(&file.parts[PART_MAIN], bytes, size)) {
        elf_file_open_debug_files(&file, &module);
        read_sections(&file.parts[PART_MAIN]);
        read_names(&file, size);
    }
    elf_file_close(&file);
    budget_end(&budget);
    return 0;
}
