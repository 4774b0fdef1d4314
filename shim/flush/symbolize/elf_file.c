#include "elf_file.h"

#include "files/by_path.h"
#include "files/trusted_file.h"
#include "loaded_image.h"
#include "open_flags.h"

#include <fcntl.h>
#include <limits.h>
#include <lzma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>

enum {
    /* Bounds the debug information, inflated, together with dwz's common file: more would cost the
     * program more memory than the names are worth. Half of it is some millions of lines of C++.
     */
    MAX_DWARF_BYTES = 128 << 20,
    MAX_LINKED_BYTES = 128 << 20, /* largest debug file whose CRC is computed: 0.1 s */
    MAX_MINIDEBUG_PACKED = 16 << 20,
    /* largest .gnu_debugdata, unpacked; distributions' have less than 1 MiB */
    MAX_MINIDEBUG_BYTES = 32 << 20,
    MAX_MINIDEBUG_MEMORY = 32 << 20,
    MAX_LINK_BYTES = PATH_MAX + 64, /* largest section that names a file */
    /* at least 1/16 of a file must be on disk, because a sparse file may claim any size */
    LEAST_STORED = 16,
};

static const char debug_folder[] = "/usr/lib/debug";

void elf_file_init(struct elf_file *file) {
    *file = (struct elf_file){0};
    for (int i = 0; i < ELF_PARTS; i++)
        elf_sections_init(&file->parts[i]);
    elf_sections_init(&file->alternate);
}

/* --- opening and identity --- */

/* Opens a file if its build id is `id`; `size` 0: any build id. */
static bool open_with_id(struct elf_sections *sections, int descriptor, const uint8_t *id,
                         size_t size) {
    uint8_t found[64];
    if (descriptor < 0 || !elf_sections_open(sections, descriptor))
        return false;
    if (size == 0 ||
        (elf_sections_build_id(sections, found) == size && memcmp(found, id, size) == 0))
        return true;
    elf_sections_close(sections);
    return false;
}

/* --- .gnu_debugdata: an xz stream that holds an ELF file with a symbol table --- */

static uint8_t *unpack_minidebug(const uint8_t *packed, size_t packed_size, size_t *size) {
    const size_t start = packed_size * 8 + 4096;
    for (size_t capacity = start; capacity <= MAX_MINIDEBUG_BYTES; capacity *= 2) {
        uint64_t memory = MAX_MINIDEBUG_MEMORY;
        size_t from = 0;
        uint8_t *const bytes = malloc(capacity);
        *size = 0;
        if (!bytes)
            return NULL;
        const lzma_ret result = lzma_stream_buffer_decode(&memory, 0, NULL, packed, &from,
                                                          packed_size, bytes, size, capacity);
        if (result == LZMA_OK)
            return bytes;
        free(bytes);
        if (result != LZMA_BUF_ERROR)
            return NULL;
    }
    return NULL;
}

static void open_minidebug(struct elf_file *file) {
    const struct elf_sections *const main = &file->parts[PART_MAIN];
    const Elf64_Shdr *const header = elf_section_named(main, ".gnu_debugdata");
    size_t packed_size;
    size_t size;
    uint8_t *const packed =
        header ? elf_section_copy(main, header, MAX_MINIDEBUG_PACKED, &packed_size) : NULL;
    uint8_t *const bytes = packed ? unpack_minidebug(packed, packed_size, &size) : NULL;
    free(packed);
    if (bytes)
        (void)elf_sections_of_memory(&file->parts[PART_MINIDEBUG], bytes, size);
}

/* --- separate debug files --- */

static bool open_by_build_id(struct elf_sections *sections, const uint8_t *id, size_t size) {
    char path[PATH_MAX];
    int at = snprintf(path, sizeof path, "%s/.build-id/%02x/", debug_folder, id[0]);
    for (size_t i = 1; i < size; i++)
        at += snprintf(path + at, sizeof path - (size_t)at, "%02x", id[i]);
    snprintf(path + at, sizeof path - (size_t)at, ".debug");
    return open_with_id(sections, trusted_file_open(path), id, size);
}

static bool has_crc(const struct elf_sections *sections, uint32_t wanted) {
    uint8_t bytes[16 << 10];
    uLong crc = 0;
    /* 512 is the unit of stat(2) */
    const uint64_t stored = (uint64_t)sections->status.st_blocks * 512;
    if (sections->size > MAX_LINKED_BYTES || stored < sections->size / LEAST_STORED)
        return false;
    for (uint64_t at = 0; at < sections->size;) {
        const ssize_t got = pread(sections->descriptor, bytes, sizeof bytes, (off_t)at);
        if (got <= 0)
            return false;
        crc = crc32_z(crc, bytes, (size_t)got);
        at += (uint64_t)got;
    }
    return crc == wanted;
}

/* Holds the contents of a section that names a file: the name, and the bytes that follow it. */
struct link {
    char name[MAX_LINK_BYTES];
    size_t rest; /* where the bytes after the name begin */
    size_t size; /* size of both */
};

static bool read_link(struct link *link, const struct elf_sections *sections, const char *section) {
    const Elf64_Shdr *const header = elf_section_named(sections, section);
    size_t size;
    uint8_t *const bytes =
        header ? elf_section_copy(sections, header, sizeof link->name, &size) : NULL;
    if (!bytes)
        return false;
    memcpy(link->name, bytes, size);
    free(bytes);
    link->size = size;
    link->rest = strnlen(link->name, size) + 1;
    return link->rest > 1 && link->rest <= size;
}

/* Accepts a CRC only for a module without a build id, because a file with the same sum is easily
 * made. */
static bool open_linked(struct elf_file *file, const char *path, uint32_t crc) {
    uint8_t id[64];
    struct elf_sections *const debug = &file->parts[PART_DEBUG];
    const size_t size = elf_sections_build_id(&file->parts[PART_MAIN], id);
    if (!open_with_id(debug, trusted_file_open(path), id, size))
        return false;
    if (size || has_crc(debug, crc))
        return true;
    elf_sections_close(debug);
    return false;
}

/* Reads .gnu_debuglink: a file name, padded to four bytes, and the CRC of that file. */
static bool open_by_link(struct elf_file *file, const char *module_path) {
    struct link link;
    uint32_t crc;
    const char *const slash = strrchr(module_path, '/');
    if (!slash || !read_link(&link, &file->parts[PART_MAIN], ".gnu_debuglink"))
        return false;
    const size_t crc_at = (link.rest + 3) & ~(size_t)3;
    if (crc_at + sizeof crc > link.size || strchr(link.name, '/'))
        return false;
    memcpy(&crc, link.name + crc_at, sizeof crc);
    const int folder = (int)(slash - module_path);
    static const char *const forms[][2] = {{"", ""}, {"", "/.debug"}, {debug_folder, ""}};
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        char path[PATH_MAX];
        const int length = snprintf(path, sizeof path, "%s%.*s%s/%s", forms[i][0], folder,
                                    module_path, forms[i][1], link.name);
        if (length < (int)sizeof path && open_linked(file, path, crc))
            return true;
    }
    return false;
}

static bool has_dwarf(const struct elf_sections *sections) {
    return elf_section_named(sections, ".debug_info") != NULL;
}

static const struct elf_sections *dwarf_source(const struct elf_file *file) {
    return has_dwarf(&file->parts[PART_MAIN]) ? &file->parts[PART_MAIN] : &file->parts[PART_DEBUG];
}

/* Reads .gnu_debugaltlink: a file name, and that file's build id. In distributions the name leads
 * below /usr/lib/debug, as an absolute path or relative to the debug file; the file is found there
 * by its build id, too.
 */
static void open_alternate(struct elf_file *file) {
    struct link link;
    if (!read_link(&link, dwarf_source(file), ".gnu_debugaltlink"))
        return;
    const uint8_t *const id = (const uint8_t *)link.name + link.rest;
    const size_t size = link.size - link.rest;
    if (size < 2 || size > 64 || open_by_build_id(&file->alternate, id, size))
        return;
    char path[PATH_MAX + sizeof link.name];
    const char *const last = strstr(link.name, "/.dwz/");
    if (link.name[0] == '/')
        snprintf(path, sizeof path, "%s", link.name);
    else
        snprintf(path, sizeof path, "%s%s", debug_folder, last ? last : "/");
    (void)open_with_id(&file->alternate, trusted_file_open(path), id, size);
}

void elf_file_open_debug_files(struct elf_file *file, const struct harvest_module *module) {
    const struct elf_sections *const main = &file->parts[PART_MAIN];
    uint8_t id[64];
    const size_t size = elf_sections_build_id(main, id);
    open_minidebug(file);
    if (!has_dwarf(main) && !(size && open_by_build_id(&file->parts[PART_DEBUG], id, size)))
        (void)open_by_link(file, module->path);
    if (has_dwarf(dwarf_source(file)))
        open_alternate(file);
}

/* --- debug information --- */

uint64_t elf_file_dwarf_bytes(const struct elf_file *file, bool *compressed) {
    bool alternate_compressed;
    const uint64_t own = debug_image_bytes(dwarf_source(file), compressed);
    const uint64_t alternate = debug_image_bytes(&file->alternate, &alternate_compressed);
    *compressed |= alternate_compressed;
    return own + alternate <= MAX_DWARF_BYTES && own ? own + alternate : 0;
}

bool elf_file_open_dwarf(struct elf_file *file) {
    if (!debug_image_open(&file->debug, dwarf_source(file)))
        return false;
    if (!elf_sections_are_open(&file->alternate))
        return true;
    Dwarf *const whole = debug_image_whole(&file->debug);
    if (whole && debug_image_open(&file->alternate_debug, &file->alternate))
        dwarf_setalt(whole, debug_image_whole(&file->alternate_debug));
    return whole != NULL;
}

/* --- the module's own file --- */

bool elf_file_open(struct elf_file *file, const struct harvest_module *module) {
    struct elf_sections *const main = &file->parts[PART_MAIN];
    const uint8_t *const id = module->build_id;
    const size_t id_size = id ? module->build_id_size : 0;
    void *image;
    size_t image_size;
    elf_file_init(file);
    if (open_with_id(main, trusted_file_open(module->path), id, id_size))
        return true;
    if (!module->unloaded &&
        open_with_id(main, trusted_file_open_mapped(module->path, module->start), id, id_size))
        return true;
    /* The kernel opens a running program's own file even if it has been deleted or replaced. */
    if (id && may_open_by_path() &&
        open_with_id(main, open("/proc/thread-self/exe", OPEN_TO_READ), id, id_size))
        return true;
    return !module->unloaded && loaded_image_make(module, &image, &image_size) &&
           elf_sections_of_memory(main, image, image_size);
}

/* --- closing --- */

static void close_parts(struct elf_file *file) {
    for (int i = 0; i < ELF_PARTS; i++)
        elf_sections_close(&file->parts[i]);
    elf_sections_close(&file->alternate);
}

void elf_file_close(struct elf_file *file) {
    debug_image_close(&file->debug);
    debug_image_close(&file->alternate_debug);
    close_parts(file);
}

static void abandon_image(struct debug_image *image) {
    if (image->bytes)
        munmap(image->bytes, image->size);
    *image = (struct debug_image){0};
}

void elf_file_abandon_dwarf(struct elf_file *file) {
    abandon_image(&file->debug);
    abandon_image(&file->alternate_debug);
}

static void abandon_part(struct elf_sections *sections) {
    if (sections->descriptor >= 0)
        close(sections->descriptor);
    elf_sections_init(sections);
}

void elf_file_abandon(struct elf_file *file) {
    elf_file_abandon_dwarf(file);
    for (int i = 0; i < ELF_PARTS; i++)
        abandon_part(&file->parts[i]);
    abandon_part(&file->alternate);
}
