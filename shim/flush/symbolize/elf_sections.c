#include "elf_sections.h"

#include "build_id_note.h"
#include "restarts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

enum {
    MAX_SECTIONS = 1024,        /* linked files have some forty */
    MAX_NAMES_BYTES = 64 << 10, /* of section names: some forty of twenty bytes */
    MAX_NOTE_BYTES = 64 << 10,  /* of one section of notes: build ids are in one of 36 bytes */
    MAX_NOTE_SECTIONS = 16,     /* three are usual */
    MAX_INFLATION = 1032,       /* deflate's maximum: zlib's "Technical Details" */
    INFLATE_AT_ONCE = 16 << 10,
};

void elf_sections_init(struct elf_sections *sections) {
    *sections = (struct elf_sections){.descriptor = -1};
}

void elf_sections_close(struct elf_sections *sections) {
    if (sections->descriptor >= 0)
        close(sections->descriptor);
    free(sections->memory);
    free(sections->headers);
    free(sections->names);
    elf_sections_init(sections);
}

/* --- reading --- */

static bool is_within(const struct elf_sections *s, uint64_t at, uint64_t size) {
    return at <= s->size && size <= s->size - at;
}

static bool elf_sections_read_at(const struct elf_sections *s, uint64_t at, void *to, size_t size) {
    if (!is_within(s, at, size))
        return false;
    if (s->memory) {
        memcpy(to, s->memory + at, size);
        return true;
    }
    int restarts = 0;
    for (size_t done = 0; done < size;) {
        const ssize_t got =
            pread(s->descriptor, (char *)to + done, size - done, (off_t)(at + done));
        if (got == 0 || (got < 0 && (errno != EINTR || restarts++ == MOST_RESTARTS)))
            return false;
        done += got > 0 ? (size_t)got : 0;
    }
    return true;
}

/* --- opening --- */

/* A file made from memory (loaded_image.h) has no names. */
static bool read_names(struct elf_sections *s, uint32_t index) {
    const Elf64_Shdr *const header = &s->headers[index];
    if (index == SHN_UNDEF)
        return true;
    if (header->sh_type != SHT_STRTAB || header->sh_size > MAX_NAMES_BYTES)
        return false;
    s->names_size = header->sh_size + 1;
    s->names = calloc(1, s->names_size);
    return s->names && elf_sections_read_at(s, header->sh_offset, s->names, header->sh_size);
}

static bool elf_read_headers(struct elf_sections *s) {
    Elf64_Ehdr file;
    if (!elf_sections_read_at(s, 0, &file, sizeof file) ||
        memcmp(file.e_ident, ELFMAG, SELFMAG) != 0 || file.e_ident[EI_CLASS] != ELFCLASS64 ||
        file.e_ident[EI_DATA] != ELFDATA2LSB || file.e_shentsize != sizeof(Elf64_Shdr) ||
        file.e_shnum == 0 || file.e_shnum > MAX_SECTIONS || file.e_shstrndx >= file.e_shnum ||
        !is_within(s, file.e_shoff, (uint64_t)file.e_shnum * sizeof *s->headers))
        return false;
    s->count = file.e_shnum;
    s->headers = calloc(s->count, sizeof *s->headers);
    return s->headers &&
           elf_sections_read_at(s, file.e_shoff, s->headers, s->count * sizeof *s->headers) &&
           read_names(s, file.e_shstrndx);
}

bool elf_sections_open(struct elf_sections *s, int descriptor) {
    elf_sections_init(s);
    s->descriptor = descriptor;
    if (fstat(descriptor, &s->status) == 0 && S_ISREG(s->status.st_mode) && s->status.st_size > 0) {
        s->size = (uint64_t)s->status.st_size;
        if (elf_read_headers(s))
            return true;
    }
    elf_sections_close(s);
    return false;
}

bool elf_sections_of_memory(struct elf_sections *s, void *bytes, size_t size) {
    elf_sections_init(s);
    s->memory = bytes;
    s->size = size;
    if (elf_read_headers(s))
        return true;
    elf_sections_close(s);
    return false;
}

/* --- sections --- */

static bool has_contents(const struct elf_sections *s, const Elf64_Shdr *header) {
    return header->sh_type != SHT_NOBITS && header->sh_type != SHT_NULL && header->sh_size > 0 &&
           is_within(s, header->sh_offset, header->sh_size);
}

const Elf64_Shdr *elf_section_named(const struct elf_sections *s, const char *name) {
    const size_t size = strlen(name) + 1;
    for (uint32_t i = 0; i < s->count; i++) {
        const Elf64_Shdr *const header = &s->headers[i];
        if (header->sh_name < s->names_size && size <= s->names_size - header->sh_name &&
            memcmp(s->names + header->sh_name, name, size) == 0 && has_contents(s, header))
            return header;
    }
    return NULL;
}

bool elf_section_is_compressed(const Elf64_Shdr *header) {
    return header->sh_flags & SHF_COMPRESSED;
}

uint64_t elf_section_size(const struct elf_sections *s, const Elf64_Shdr *header) {
    Elf64_Chdr packed;
    if (!has_contents(s, header))
        return 0;
    if (!elf_section_is_compressed(header))
        return header->sh_size;
    if (header->sh_size < sizeof packed ||
        !elf_sections_read_at(s, header->sh_offset, &packed, sizeof packed) ||
        packed.ch_type != ELFCOMPRESS_ZLIB ||
        packed.ch_size > (header->sh_size - sizeof packed) * MAX_INFLATION)
        return 0;
    return packed.ch_size;
}

/* Inflates all of `[at, end)` of the file through `stream`, whose output has been set. */
static bool inflate_range(const struct elf_sections *s, uint64_t at, uint64_t end,
                          z_stream *stream) {
    uint8_t input[INFLATE_AT_ONCE];
    int result = Z_OK;
    while (result == Z_OK && at < end && stream->avail_out) {
        const size_t size = end - at < sizeof input ? end - at : sizeof input;
        if (!elf_sections_read_at(s, at, input, size))
            return false;
        at += size;
        stream->next_in = input;
        stream->avail_in = (uInt)size;
        result = inflate(stream, Z_NO_FLUSH);
    }
    return (result == Z_OK || result == Z_STREAM_END) && stream->avail_out == 0;
}

static bool inflate_section(const struct elf_sections *s, const Elf64_Shdr *header, uint8_t *to,
                            uint64_t size) {
    z_stream stream = {.next_out = to, .avail_out = (uInt)size};
    if (size > UINT32_MAX || inflateInit(&stream) != Z_OK)
        return false;
    const bool done = inflate_range(s, header->sh_offset + sizeof(Elf64_Chdr),
                                    header->sh_offset + header->sh_size, &stream);
    inflateEnd(&stream);
    return done;
}

bool elf_section_read(const struct elf_sections *s, const Elf64_Shdr *header, uint8_t *to,
                      uint64_t size) {
    return elf_section_is_compressed(header) ? inflate_section(s, header, to, size)
                                             : elf_sections_read_at(s, header->sh_offset, to, size);
}

bool elf_section_read_part(const struct elf_sections *s, const Elf64_Shdr *header, uint64_t at,
                           void *to, size_t size) {
    return has_contents(s, header) && !elf_section_is_compressed(header) && at <= header->sh_size &&
           size <= header->sh_size - at &&
           elf_sections_read_at(s, header->sh_offset + at, to, size);
}

bool elf_section_read_packed(const struct elf_sections *s, const Elf64_Shdr *header, uint64_t at,
                             void *to, size_t size) {
    const uint64_t packed_at = at + sizeof(Elf64_Chdr);
    return packed_at <= header->sh_size && size <= header->sh_size - packed_at &&
           elf_sections_read_at(s, header->sh_offset + packed_at, to, size);
}

uint8_t *elf_section_copy(const struct elf_sections *s, const Elf64_Shdr *header, size_t max,
                          size_t *size) {
    *size = elf_section_size(s, header);
    uint8_t *const bytes = *size && *size <= max ? malloc(*size) : NULL;
    if (bytes && elf_section_read(s, header, bytes, *size))
        return bytes;
    free(bytes);
    return NULL;
}

size_t elf_sections_build_id(const struct elf_sections *s, uint8_t id[64]) {
    uint32_t found_size = 0;
    unsigned checked = 0;
    for (uint32_t i = 0; i < s->count && !found_size && checked < MAX_NOTE_SECTIONS; i++) {
        size_t size;
        if (s->headers[i].sh_type != SHT_NOTE)
            continue;
        checked++;
        uint8_t *const notes = elf_section_copy(s, &s->headers[i], MAX_NOTE_BYTES, &size);
        const uint8_t *const found = notes ? build_id_note(notes, size, &found_size) : NULL;
        if (found)
            memcpy(id, found, found_size);
        free(notes);
    }
    return found_size;
}
