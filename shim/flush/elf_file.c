#include "elf_file.h"

#include "loaded_image.h"

#include <fcntl.h>
#include <limits.h>
#include <lzma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

enum {
    MAX_READ_BYTES =
        8 << 20, /* of an unloaded library; larger ones are mapped: memory may be short */
    MAX_MINIDEBUG_BYTES = 64 << 20,
    MAX_MINIDEBUG_MEMORY = 128 << 20,
};
/* Larger debug information would cost the helper more memory than the names are worth. */
static const size_t max_debug_bytes = (size_t)1 << 30;
static const char debug_folder[] = "/usr/lib/debug";

/* --- images --- */

static void close_image(struct elf_image *image) {
    if (image->elf)
        elf_end(image->elf);
    if (image->mapped)
        munmap(image->bytes, image->size);
    else
        free(image->bytes);
    *image = (struct elf_image){0};
}

static bool start_elf(struct elf_image *image) {
    image->elf = elf_memory(image->bytes, image->size);
    if (image->elf && elf_kind(image->elf) == ELF_K_ELF)
        return true;
    close_image(image);
    return false;
}

static bool map_bytes(struct elf_image *image, int descriptor) {
    /* writable and private: libelf may convert in place */
    void *const bytes = mmap(NULL, image->size, PROT_READ | PROT_WRITE, MAP_PRIVATE, descriptor, 0);
    image->mapped = bytes != MAP_FAILED;
    image->bytes = image->mapped ? bytes : NULL;
    return image->mapped;
}

static bool read_bytes(struct elf_image *image, int descriptor) {
    size_t at = 0;
    image->bytes = malloc(image->size);
    while (image->bytes && at < image->size) {
        const ssize_t got =
            pread(descriptor, (char *)image->bytes + at, image->size - at, (off_t)at);
        if (got <= 0)
            return false;
        at += (size_t)got;
    }
    return image->bytes;
}

static bool take_file(struct elf_image *image, const char *path, bool reads) {
    struct stat status;
    const int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (descriptor < 0)
        return false;
    bool taken = false;
    if (fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode) && status.st_size > 0) {
        image->size = (size_t)status.st_size;
        taken = reads && image->size <= MAX_READ_BYTES ? read_bytes(image, descriptor)
                                                       : map_bytes(image, descriptor);
    }
    close(descriptor);
    if (taken)
        return start_elf(image);
    close_image(image);
    return false;
}

static bool map_file(struct elf_image *image, const char *path) {
    return take_file(image, path, false);
}

static bool copy_memory(struct elf_image *image, const struct harvest_module *module) {
    image->size = module->end - module->start;
    image->bytes = malloc(image->size);
    if (!image->bytes)
        return false;
    memcpy(image->bytes, (const void *)(uintptr_t)module->start, image->size);
    return start_elf(image);
}

/* --- identity --- */

static size_t build_id_in(Elf_Data *data, const void **id) {
    GElf_Nhdr note;
    size_t name;
    size_t descriptor;
    for (size_t at = 0; (at = gelf_getnote(data, at, &note, &name, &descriptor)) > 0;) {
        if (note.n_type != NT_GNU_BUILD_ID || note.n_namesz != 4 ||
            memcmp((const char *)data->d_buf + name, "GNU", 4) != 0)
            continue;
        *id = (const char *)data->d_buf + descriptor;
        return note.n_descsz;
    }
    return 0;
}

size_t elf_build_id(Elf *elf, const void **id) {
    for (Elf_Scn *section = NULL; (section = elf_nextscn(elf, section));) {
        GElf_Shdr header;
        if (!gelf_getshdr(section, &header) || header.sh_type != SHT_NOTE)
            continue;
        Elf_Data *const data = elf_getdata(section, NULL);
        const size_t size = data ? build_id_in(data, id) : 0;
        if (size)
            return size;
    }
    return 0;
}

static bool same_build_id(Elf *elf, const uint8_t *id, size_t size) {
    const void *found = NULL;
    const size_t found_size = elf_build_id(elf, &found);
    return found && found_size == size && memcmp(found, id, size) == 0;
}

/* A file without an id may be the one; a file with another id is not. */
static bool is_the_loaded_file(Elf *elf, const struct harvest_module *module) {
    const void *found = NULL;
    if (!module->build_id)
        return true;
    return elf_build_id(elf, &found) == 0 ||
           same_build_id(elf, module->build_id, module->build_id_size);
}

/* --- sections --- */

static Elf_Scn *section_named(Elf *elf, const char *wanted, GElf_Shdr *header) {
    size_t names;
    if (elf_getshdrstrndx(elf, &names) != 0)
        return NULL;
    for (Elf_Scn *section = NULL; (section = elf_nextscn(elf, section));) {
        if (!gelf_getshdr(section, header))
            continue;
        const char *const name = elf_strptr(elf, names, header->sh_name);
        if (name && strcmp(name, wanted) == 0)
            return section;
    }
    return NULL;
}

static bool has_debug_info(Elf *elf) {
    GElf_Shdr header;
    return section_named(elf, ".debug_info", &header) && header.sh_type != SHT_NOBITS;
}

/* --- .gnu_debugdata: an xz stream that holds an ELF file with a symbol table --- */

static bool unpack(struct elf_image *image, const Elf_Data *packed) {
    size_t capacity = packed->d_size * 8 + 4096;
    for (; capacity <= MAX_MINIDEBUG_BYTES; capacity *= 2) {
        uint64_t memory = MAX_MINIDEBUG_MEMORY;
        size_t from = 0;
        size_t to = 0;
        uint8_t *const bytes = malloc(capacity);
        if (!bytes)
            return false;
        const lzma_ret result = lzma_stream_buffer_decode(&memory, 0, NULL, packed->d_buf, &from,
                                                          packed->d_size, bytes, &to, capacity);
        if (result == LZMA_OK) {
            *image = (struct elf_image){.bytes = bytes, .size = to};
            return start_elf(image);
        }
        free(bytes);
        if (result != LZMA_BUF_ERROR)
            return false;
    }
    return false;
}

static void open_minidebug(struct elf_file *file) {
    GElf_Shdr header;
    Elf_Scn *const section = section_named(file->main.elf, ".gnu_debugdata", &header);
    Elf_Data *const data = section ? elf_rawdata(section, NULL) : NULL;
    if (data && data->d_size)
        (void)unpack(&file->minidebug, data);
}

/* --- separate debug files --- */

static bool open_by_build_id(struct elf_file *file) {
    const void *bytes = NULL;
    const size_t size = elf_build_id(file->main.elf, &bytes);
    const uint8_t *const id = bytes;
    char path[PATH_MAX];
    if (size < 2 || size > 64)
        return false;
    int at = snprintf(path, sizeof path, "%s/.build-id/%02x/", debug_folder, id[0]);
    for (size_t i = 1; i < size; i++)
        at += snprintf(path + at, sizeof path - (size_t)at, "%02x", id[i]);
    snprintf(path + at, sizeof path - (size_t)at, ".debug");
    if (!map_file(&file->debug, path))
        return false;
    if (same_build_id(file->debug.elf, id, size))
        return true;
    close_image(&file->debug);
    return false;
}

static bool open_linked(struct elf_file *file, const char *path, uint32_t wanted_crc) {
    if (!map_file(&file->debug, path))
        return false;
    const uLong crc = crc32_z(0, file->debug.bytes, file->debug.size);
    if (crc == wanted_crc)
        return true;
    close_image(&file->debug);
    return false;
}

/* .gnu_debuglink: a file name, padded to four bytes, and the CRC of that file. */
static bool open_by_link(struct elf_file *file, const char *module_path) {
    GElf_Shdr header;
    Elf_Scn *const section = section_named(file->main.elf, ".gnu_debuglink", &header);
    const Elf_Data *const data = section ? elf_rawdata(section, NULL) : NULL;
    const char *const slash = strrchr(module_path, '/');
    if (!data || data->d_size < 8 || !slash)
        return false;
    const char *const name = data->d_buf;
    const size_t length = strnlen(name, data->d_size);
    const size_t crc_at = (length + 4) & ~(size_t)3;
    if (crc_at + 4 > data->d_size || strchr(name, '/'))
        return false;
    uint32_t crc;
    memcpy(&crc, name + crc_at, sizeof crc);
    const int folder = (int)(slash - module_path);
    static const char *const forms[] = {"%.*s/%s", "%.*s/.debug/%s"};
    char path[PATH_MAX];
    for (size_t i = 0; i < 2; i++) {
        snprintf(path, sizeof path, i ? forms[1] : forms[0], folder, module_path, name);
        if (open_linked(file, path, crc))
            return true;
    }
    snprintf(path, sizeof path, "%s%.*s/%s", debug_folder, folder, module_path, name);
    return open_linked(file, path, crc);
}

static bool is_compressed(Elf *elf) {
    GElf_Shdr header;
    return section_named(elf, ".debug_info", &header) && (header.sh_flags & SHF_COMPRESSED);
}

static void open_dwarf(struct elf_file *file, enum dwarf_effort effort) {
    const bool inside = has_debug_info(file->main.elf);
    Elf *const source = inside ? file->main.elf : file->debug.elf;
    const size_t size = inside ? file->main.size : file->debug.size;
    if (!source || size > max_debug_bytes || effort == DWARF_NONE)
        return;
    if (effort == DWARF_ANY || !is_compressed(source))
        file->dwarf = dwarf_begin_elf(source, DWARF_C_READ, NULL);
}

void elf_file_add_dwarf(struct elf_file *file) {
    if (file->main.elf && !file->dwarf)
        open_dwarf(file, DWARF_ANY);
}

/* --- opening and closing --- */

/* Nobody keeps the file of an unloaded library from being shortened in its place: a mapping of it
 * would be a trap. */
static bool open_named(struct elf_file *file, const struct harvest_module *module) {
    if (module->path[0] != '/' || !take_file(&file->main, module->path, module->unloaded))
        return false;
    if (is_the_loaded_file(file->main.elf, module))
        return true;
    close_image(&file->main);
    return false;
}

/* The kernel opens a running program's own file even when it has been deleted or replaced. */
static bool open_executable(struct elf_file *file, const struct harvest_module *module) {
    if (!module->build_id || !map_file(&file->main, "/proc/thread-self/exe"))
        return false;
    if (same_build_id(file->main.elf, module->build_id, module->build_id_size))
        return true;
    close_image(&file->main);
    return false;
}

static bool make_image(struct elf_file *file, const struct harvest_module *module) {
    struct elf_image *const image = &file->main;
    return !module->unloaded && loaded_image_make(module, &image->bytes, &image->size) &&
           start_elf(image);
}

bool elf_file_open(struct elf_file *file, const struct harvest_module *module,
                   enum dwarf_effort effort) {
    *file = (struct elf_file){0};
    elf_version(EV_CURRENT);
    const bool in_memory = strcmp(module->path, "[vdso]") == 0;
    const bool opened = in_memory ? !module->unloaded && copy_memory(&file->main, module)
                                  : open_named(file, module) || open_executable(file, module) ||
                                        make_image(file, module);
    if (!opened)
        return false;
    open_minidebug(file);
    if (!has_debug_info(file->main.elf) && !open_by_build_id(file))
        (void)open_by_link(file, module->path);
    open_dwarf(file, effort);
    return true;
}

void elf_file_close(struct elf_file *file) {
    if (file->dwarf)
        dwarf_end(file->dwarf);
    file->dwarf = NULL;
    close_image(&file->minidebug);
    close_image(&file->debug);
    close_image(&file->main);
}
