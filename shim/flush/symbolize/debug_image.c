#include "debug_image.h"

#include "image_header.h"

#include <string.h>
#include <sys/mman.h>

/* Lists the sections with functions, lines and inlined functions; sections that are read in parts
 * come first. Locations of variables, macros and types of other units are left out, and
 * .gnu_debugaltlink, which would make libdw open files. */
static const char *const wanted[] = {
    [DEBUG_INFO] = ".debug_info",
    [DEBUG_ABBREV] = ".debug_abbrev",
    [DEBUG_LINE] = ".debug_line",
    ".debug_aranges",
    ".debug_str",
    ".debug_line_str",
    ".debug_str_offsets",
    ".debug_ranges",
    ".debug_rnglists",
    ".debug_addr",
};

enum {
    WANTED = sizeof wanted / sizeof *wanted,
    ARANGES = DEBUG_PARTS,
    SECTIONS = WANTED + 2, /* the wanted sections, the empty section, and the section of names */
    NAME_BYTES = 32,
    ALIGNMENT = 16,
};

/* Holds the headers of one image: either of the whole file, or of one unit. */
struct head {
    Elf64_Ehdr file;
    Elf64_Shdr sections[SECTIONS];
    char names[SECTIONS][NAME_BYTES];
} __attribute__((aligned(ALIGNMENT)));

/* Holds the descriptions of all parts and units, at the start of the image's mapping. Few units are
 * read, so most descriptions are never touched and take no memory. */
struct debug_room {
    struct section_parts parts[DEBUG_PARTS];
    struct debug_file units[MAX_UNIT_IMAGES];
    struct head heads[1 + MAX_UNIT_IMAGES]; /* the first one is for the whole file */
};

static uint64_t padded(uint64_t size) {
    return (size + ALIGNMENT - 1) & ~(uint64_t)(ALIGNMENT - 1);
}

uint64_t debug_image_bytes(const struct elf_sections *sections, bool *compressed) {
    uint64_t total = padded(sizeof(struct head));
    uint64_t most_packed = 0; /* most packed bytes that are held while zstd reads them */
    *compressed = false;
    for (int i = 0; i < WANTED; i++) {
        const Elf64_Shdr *const header = elf_section_named(sections, wanted[i]);
        const uint64_t size = header ? elf_section_size(sections, header) : 0;
        if ((i == DEBUG_INFO && !size) || size > UINT32_MAX)
            return 0;
        if (!size)
            continue;
        const enum packing packing = elf_section_form(sections, header).packing;
        *compressed |= packing != PACKING_NONE;
        if (packing == PACKING_ZSTD && header->sh_size > most_packed)
            most_packed = header->sh_size;
        total += padded(size);
    }
    return total + padded(most_packed);
}

/* --- the mapping --- */

static bool read_section(struct debug_image *image, const struct elf_sections *sections,
                         const Elf64_Shdr *header, int number, uint64_t size) {
    uint8_t *const to = image->bytes + image->filled;
    if (number < DEBUG_PARTS)
        return section_parts_open(&image->room->parts[number], sections, header, to, size);
    if (!elf_section_read(sections, header, to, size))
        return false;
    if (number == ARANGES) {
        image->aranges = to;
        image->aranges_size = size;
    }
    return true;
}

static bool add_section(struct debug_image *image, const struct elf_sections *sections,
                        int number) {
    struct head *const head = &image->room->heads[0];
    const Elf64_Shdr *const header = elf_section_named(sections, wanted[number]);
    const uint64_t size = header ? elf_section_size(sections, header) : 0;
    if (!size)
        return true;
    if (size > image->size - image->filled || !read_section(image, sections, header, number, size))
        return false;
    memcpy(head->names[number + 1], wanted[number], strlen(wanted[number]) + 1);
    head->sections[number + 1] =
        (Elf64_Shdr){.sh_name = (uint32_t)(number + 1) * NAME_BYTES,
                     .sh_type = SHT_PROGBITS,
                     .sh_offset = image->filled - offsetof(struct debug_room, heads),
                     .sh_size = size,
                     .sh_addralign = 1};
    image->filled += padded(size);
    return true;
}

static bool read_sections(struct debug_image *image, const struct elf_sections *sections) {
    struct head *const head = &image->room->heads[0];
    image->filled = sizeof *image->room;
    head->file = image_header(offsetof(struct head, sections), SECTIONS, SECTIONS - 1);
    head->sections[SECTIONS - 1] = (Elf64_Shdr){.sh_name = (SECTIONS - 1) * NAME_BYTES,
                                                .sh_type = SHT_STRTAB,
                                                .sh_offset = offsetof(struct head, names),
                                                .sh_size = sizeof head->names};
    for (int i = 0; i < WANTED; i++)
        if (!add_section(image, sections, i))
            return false;
    return true;
}

bool debug_image_open(struct debug_image *image, const struct elf_sections *sections) {
    bool compressed;
    const uint64_t size = debug_image_bytes(sections, &compressed);
    *image = (struct debug_image){.size = size + sizeof *image->room};
    /* writable, because libelf may convert in place; most pages are never touched */
    void *const bytes = size ? mmap(NULL, image->size, PROT_READ | PROT_WRITE,
                                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)
                             : MAP_FAILED;
    if (bytes == MAP_FAILED)
        return false;
    (void)madvise(bytes, image->size, MADV_DONTDUMP);
    (void)madvise(bytes, image->size,
                  MADV_NOHUGEPAGE); /* otherwise one touched byte would cost a huge page */
    image->bytes = bytes;
    image->room = bytes;
    elf_version(EV_CURRENT);
    if (read_sections(image, sections))
        return true;
    debug_image_close(image);
    return false;
}

/* --- reading it --- */

const uint8_t *debug_image_need(struct debug_image *image, enum debug_part part, uint64_t at,
                                uint64_t size) {
    struct section_parts *const parts = &image->room->parts[part];
    return parts->to && section_parts_need(parts, at, size) ? parts->to + at : NULL;
}

static bool debug_image_read_all(struct debug_image *image) {
    for (int i = 0; i < DEBUG_PARTS; i++)
        if (image->room->parts[i].to && !debug_image_need(image, i, 0, image->room->parts[i].size))
            return false;
    return true;
}

/* Opens the image whose headers are heads[number]. */
static bool debug_image_begin(struct debug_image *image, unsigned number, struct debug_file *file) {
    uint8_t *const head = (uint8_t *)&image->room->heads[number];
    file->elf = elf_memory((char *)head, image->size - (size_t)(head - image->bytes));
    if (file->elf)
        file->dwarf = dwarf_begin_elf(file->elf, DWARF_C_READ, NULL);
    return file->dwarf;
}

static void debug_image_end(struct debug_file *file) {
    if (file->dwarf)
        dwarf_end(file->dwarf);
    if (file->elf)
        elf_end(file->elf);
    *file = (struct debug_file){0};
}

Dwarf *debug_image_whole(struct debug_image *image) {
    if (!image->whole.elf && debug_image_read_all(image))
        (void)debug_image_begin(image, 0, &image->whole);
    return image->whole.dwarf;
}

Dwarf *debug_image_known_unit(const struct debug_image *image, uint64_t at) {
    for (unsigned i = 0; i < image->unit_count; i++)
        if (image->room->units[i].at == at)
            return image->room->units[i].dwarf;
    return NULL;
}

Dwarf *debug_image_unit(struct debug_image *image, uint64_t at, uint64_t size) {
    if (image->unit_count == MAX_UNIT_IMAGES)
        return NULL;
    struct debug_file *const file = &image->room->units[image->unit_count++];
    struct head *const head = &image->room->heads[image->unit_count];
    *head = image->room->heads[0];
    file->at = at;
    for (int i = 0; i < SECTIONS - 1; i++)
        if (head->sections[i].sh_size)
            head->sections[i].sh_offset -= image->unit_count * sizeof *head;
    head->sections[DEBUG_INFO + 1].sh_offset += at;
    head->sections[DEBUG_INFO + 1].sh_size = size;
    (void)debug_image_begin(image, image->unit_count, file);
    return file->dwarf;
}

uint64_t debug_image_line_bytes(struct debug_image *image, uint64_t offset, uint64_t max) {
    uint32_t length;
    uint64_t long_length;
    const uint8_t *const program =
        debug_image_need(image, DEBUG_LINE, offset, sizeof length + sizeof long_length);
    if (!program)
        return 0;
    memcpy(&length, program, sizeof length);
    memcpy(&long_length, program + sizeof length, sizeof long_length);
    /* DWARF 5, 7.4: the 64-bit format's escape */
    const bool is_long = length == UINT32_MAX;
    const uint64_t rest = is_long ? long_length : length;
    const uint64_t start = is_long ? sizeof length + sizeof long_length : sizeof length;
    const uint64_t left = image->room->parts[DEBUG_LINE].size - offset;
    const uint64_t within = rest < left - start ? start + rest : left;
    if (within <= max && !debug_image_need(image, DEBUG_LINE, offset, within))
        return 0;
    return within;
}

static void close_all(struct debug_image *image) {
    for (unsigned i = 0; i < image->unit_count; i++)
        debug_image_end(&image->room->units[i]);
    debug_image_end(&image->whole);
    for (int i = 0; i < DEBUG_PARTS; i++)
        section_parts_close(&image->room->parts[i]);
    munmap(image->bytes, image->size);
}

void debug_image_close(struct debug_image *image) {
    if (image->bytes)
        close_all(image);
    *image = (struct debug_image){0};
}
