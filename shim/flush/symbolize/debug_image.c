#include "debug_image.h"

#include "image_header.h"

#include <string.h>
#include <sys/mman.h>

/* What functions, lines and inlined functions are read from. Left out are locations of variables,
 * macros, types of other units; .gnu_debugaltlink, which would have libdw open files. */
static const char *const wanted[] = {
    ".debug_info",        ".debug_abbrev", ".debug_line",     ".debug_str",  ".debug_line_str",
    ".debug_str_offsets", ".debug_ranges", ".debug_rnglists", ".debug_addr", ".debug_aranges",
};

enum {
    WANTED = sizeof wanted / sizeof *wanted,
    SECTIONS = WANTED + 2, /* the empty one, and the names */
    NAME_BYTES = 32,
    INFO = 0,
    LINE = 2,
    ALIGNMENT = 16,
};

/* What stands before the sections. */
struct head {
    Elf64_Ehdr file;
    Elf64_Shdr sections[SECTIONS];
    char names[SECTIONS][NAME_BYTES];
};

static uint64_t padded(uint64_t size) {
    return (size + ALIGNMENT - 1) & ~(uint64_t)(ALIGNMENT - 1);
}

uint64_t debug_image_bytes(const struct elf_sections *sections, bool *compressed) {
    uint64_t total = padded(sizeof(struct head));
    *compressed = false;
    for (int i = 0; i < WANTED; i++) {
        const Elf64_Shdr *const header = elf_section_named(sections, wanted[i]);
        const uint64_t size = header ? elf_section_size(sections, header) : 0;
        if ((i == INFO && !size) || size > UINT32_MAX)
            return 0;
        if (size)
            *compressed |= elf_section_is_compressed(header);
        total += padded(size);
    }
    return total;
}

static void describe_file(struct head *head) {
    head->file = image_header(offsetof(struct head, sections), SECTIONS, SECTIONS - 1);
    head->sections[SECTIONS - 1] = (Elf64_Shdr){.sh_name = (SECTIONS - 1) * NAME_BYTES,
                                                .sh_type = SHT_STRTAB,
                                                .sh_offset = offsetof(struct head, names),
                                                .sh_size = sizeof head->names};
}

/* The section goes to `at`. */
static bool add_section(struct debug_image *image, const struct elf_sections *sections, int number,
                        uint64_t *at) {
    struct head *const head = (struct head *)(void *)image->bytes;
    const Elf64_Shdr *const header = elf_section_named(sections, wanted[number]);
    const uint64_t size = header ? elf_section_size(sections, header) : 0;
    if (!size)
        return true;
    if (size > image->size - *at || !elf_section_read(sections, header, image->bytes + *at, size))
        return false;
    memcpy(head->names[number + 1], wanted[number], strlen(wanted[number]) + 1);
    head->sections[number + 1] = (Elf64_Shdr){.sh_name = (uint32_t)(number + 1) * NAME_BYTES,
                                              .sh_type = SHT_PROGBITS,
                                              .sh_offset = *at,
                                              .sh_size = size,
                                              .sh_addralign = 1};
    if (number == LINE) {
        image->line_at = *at;
        image->line_size = size;
    }
    *at += padded(size);
    return true;
}

static bool read_sections(struct debug_image *image, const struct elf_sections *sections) {
    uint64_t at = padded(sizeof(struct head));
    for (int i = 0; i < WANTED; i++)
        if (!add_section(image, sections, i, &at))
            return false;
    describe_file((struct head *)(void *)image->bytes);
    return true;
}

bool debug_image_open(struct debug_image *image, const struct elf_sections *sections) {
    bool compressed;
    *image = (struct debug_image){.size = debug_image_bytes(sections, &compressed)};
    /* writable: libelf may convert in place */
    void *const bytes = image->size ? mmap(NULL, image->size, PROT_READ | PROT_WRITE,
                                           MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
                                    : MAP_FAILED;
    if (bytes == MAP_FAILED)
        return false;
    (void)madvise(bytes, image->size, MADV_DONTDUMP);
    image->bytes = bytes;
    elf_version(EV_CURRENT);
    if (read_sections(image, sections))
        image->elf = elf_memory((char *)image->bytes, image->size);
    if (image->elf)
        image->dwarf = dwarf_begin_elf(image->elf, DWARF_C_READ, NULL);
    if (image->dwarf)
        return true;
    debug_image_close(image);
    return false;
}

uint64_t debug_image_line_bytes(const struct debug_image *image, uint64_t offset) {
    uint32_t length;
    uint64_t long_length;
    if (offset > image->line_size || image->line_size - offset < sizeof length + sizeof long_length)
        return 0;
    const uint8_t *const program = image->bytes + image->line_at + offset;
    memcpy(&length, program, sizeof length);
    memcpy(&long_length, program + sizeof length, sizeof long_length);
    /* DWARF 5, 7.4: the 64-bit format's escape */
    const uint64_t bytes = length == UINT32_MAX ? long_length : length;
    return bytes < image->line_size - offset ? bytes : image->line_size - offset;
}

void debug_image_close(struct debug_image *image) {
    if (image->dwarf)
        dwarf_end(image->dwarf);
    if (image->elf)
        elf_end(image->elf);
    if (image->bytes)
        munmap(image->bytes, image->size);
    *image = (struct debug_image){0};
}
