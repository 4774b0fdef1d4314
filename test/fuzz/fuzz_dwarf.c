/* Fuzzes debug information through libdw, from sections that were changed: reading ends, within a
 * bound on time and memory, and opens no file. */
#include "budget.h"

#include "symbolize/dwarf_lines.h"
#include "symbolize/elf_file.h"

#include <errno.h>
#include <stdarg.h>

enum { MAX_LINES = 32, ADDRESSES = 48, STEP = 16 };

static const double most_seconds = 4;
static const size_t most_bytes = (size_t)256 << 20;
static const size_t largest_section = 1 << 20; /* the largest inflated section that is tried */

/* Is set while libdw runs: without the replacements below, libdw would open split and alternate
 * files by the names that it finds. */
static bool inside;
int open(const char *path, int flags, ...);
int open64(const char *path, int flags, ...);
int open(const char *path, int flags, ...) {
    (void)path;
    (void)flags;
    promise(!inside);
    errno = ENOENT;
    return -1;
}
int open64(const char *path, int flags, ...) {
    return open(path, flags);
}

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed);

/* Changes mostly the content of sections, not the headers. Returns the new size. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed) {
    struct elf_sections sections;
    uint8_t *const copy = malloc(size ? size : 1);
    promise(copy);
    memcpy(copy, data, size);
    if (seed % 16 == 0 || !elf_sections_of_memory(&sections, copy, size)) {
        if (seed % 16 == 0)
            free(copy);
        return LLVMFuzzerMutate(data, size, max);
    }
    const Elf64_Shdr *const section = &sections.headers[seed / 16 % sections.count];
    if (section->sh_type == SHT_PROGBITS && section->sh_offset < size &&
        section->sh_size <= size - section->sh_offset && section->sh_size > 0) {
        uint8_t *const part = data + section->sh_offset;
        const size_t new_size = LLVMFuzzerMutate(part, section->sh_size, section->sh_size);
        memcpy(part + new_size, copy + section->sh_offset + new_size, section->sh_size - new_size);
    }
    elf_sections_close(&sections);
    return size;
}

static void look_up(struct dwarf_functions *functions, uint64_t address) {
    struct symbol_line lines[MAX_LINES];
    bool partial = false;
    const size_t count = dwarf_lines(functions, address, lines, MAX_LINES, &partial);
    promise(count <= MAX_LINES);
    for (size_t i = 0; i < count; i++) {
        promise(lines[i].file && strlen(lines[i].file) < 4096);
        promise(lines[i].system_name || count == 1 || i == count - 1);
        promise(!lines[i].system_name || strlen(lines[i].system_name) < 8192);
    }
}

static void read_lines(struct debug_image *image, uint64_t first) {
    struct dwarf_functions *const functions = dwarf_functions_open(image);
    promise(functions);
    for (uint64_t i = 0; i < ADDRESSES; i++)
        look_up(functions, first + i * STEP);
    look_up(functions, 0);
    look_up(functions, UINT64_MAX);
    dwarf_functions_close(functions);
}

static uint64_t code_of(const struct elf_sections *sections) {
    for (uint32_t i = 0; i < sections->count; i++)
        if (sections->headers[i].sh_flags & SHF_EXECINSTR)
            return sections->headers[i].sh_addr;
    return 0x1000;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct input input = {data, size};
    struct elf_sections sections;
    struct debug_image image;
    bool compressed;
    uint8_t *const bytes = take_rest(&input, &size);
    if (!elf_sections_of_memory(&sections, bytes, size))
        return 0;
    const uint64_t wanted = debug_image_bytes(&sections, &compressed);
    if (wanted && wanted < largest_section) {
        const struct budget budget = budget_begin(most_seconds, most_bytes);
        inside = true;
        if (debug_image_open(&image, &sections))
            read_lines(&image, code_of(&sections));
        debug_image_close(&image);
        inside = false;
        budget_end(&budget);
    }
    elf_sections_close(&sections);
    return 0;
}
