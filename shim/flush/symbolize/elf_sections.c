#include "elf_sections.h"

#include "build_id_note.h"
#include "restarts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

enum {
    MAX_SECTIONS = 1024,        /* limit of sections; linked files have some forty */
    MAX_NAMES_BYTES = 64 << 10, /* limit of section names; files have some forty of twenty bytes */
    /* limit of the bytes of one section of notes; the section with a build id has 36 bytes */
    MAX_NOTE_BYTES = 64 << 10,
    MAX_NOTE_SECTIONS = 16, /* limit of sections of notes; three are usual */
    MAX_INFLATION = 1032,   /* deflate's largest ratio: zlib's "Technical Details" */
    /* Bounds zstd's ratio: a block of four bytes, of one repeated byte, becomes 128 KiB (RFC 8878,
     * 3.1.1.2). */
    MAX_ZSTD_INFLATION = 32768,
    INFLATE_AT_ONCE = 16 << 10,
    MAX_DEBUG_NAME = 32,
    PACKED_BY_ZSTD = 2, /* ELFCOMPRESS_ZSTD; older C libraries do not declare it */
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

/* Reads the sections' names. A file made from memory (loaded_image.h) has no names. */
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

static bool has_name(const struct elf_sections *s, const Elf64_Shdr *header, const char *name,
                     size_t size) {
    return header->sh_name < s->names_size && size <= s->names_size - header->sh_name &&
           memcmp(s->names + header->sh_name, name, size) == 0;
}

static const Elf64_Shdr *find_named(const struct elf_sections *s, const char *name) {
    for (uint32_t i = 0; i < s->count; i++)
        if (has_name(s, &s->headers[i], name, strlen(name) + 1) && has_contents(s, &s->headers[i]))
            return &s->headers[i];
    return NULL;
}

static const char debug_prefix[] = ".debug_";
static const char packed_prefix[] = ".zdebug_";

const Elf64_Shdr *elf_section_named(const struct elf_sections *s, const char *name) {
    char other[MAX_DEBUG_NAME];
    const Elf64_Shdr *const header = find_named(s, name);
    if (header || strncmp(name, debug_prefix, sizeof debug_prefix - 1) != 0)
        return header;
    const int length =
        snprintf(other, sizeof other, "%s%s", packed_prefix, name + sizeof debug_prefix - 1);
    return length < (int)sizeof other ? find_named(s, other) : NULL;
}

/* --- packed contents --- */

/* Has the layout of GNU's form before SHF_COMPRESSED: the letters, then the size, highest byte
 * first. */
struct zdebug_head {
    char letters[4];
    uint8_t size[8];
};

static struct section_form form_of_zdebug(const struct zdebug_head *head) {
    struct section_form form = {.packing = PACKING_ZLIB, .head = sizeof *head};
    for (size_t i = 0; i < sizeof head->size; i++)
        form.size = form.size << 8 | head->size[i];
    return form;
}

static struct section_form form_of_head(const Elf64_Chdr *head) {
    return (struct section_form){.packing = head->ch_type == ELFCOMPRESS_ZLIB ? PACKING_ZLIB
                                            : head->ch_type == PACKED_BY_ZSTD ? PACKING_ZSTD
                                                                              : PACKING_UNKNOWN,
                                 .size = head->ch_size,
                                 .head = sizeof *head};
}

/* Returns the form; sets its size to 0 if the packed bytes cannot inflate to that size. */
static struct section_form bounded_form(struct section_form form, const Elf64_Shdr *header) {
    const uint64_t most = form.packing == PACKING_ZSTD   ? MAX_ZSTD_INFLATION
                          : form.packing == PACKING_ZLIB ? MAX_INFLATION
                                                         : 0;
    /* a section lies within its file: this product is far below 2^64 */
    if (form.size > (header->sh_size - form.head) * most)
        form.size = 0;
    return form;
}

struct section_form elf_section_form(const struct elf_sections *s, const Elf64_Shdr *header) {
    static const struct section_form unknown = {.packing = PACKING_UNKNOWN};
    Elf64_Chdr head;
    struct zdebug_head old;
    if (header->sh_flags & SHF_COMPRESSED)
        return elf_section_read_raw(s, header, 0, &head, sizeof head)
                   ? bounded_form(form_of_head(&head), header)
                   : unknown;
    if (has_name(s, header, packed_prefix, sizeof packed_prefix - 1))
        return elf_section_read_raw(s, header, 0, &old, sizeof old) &&
                       memcmp(old.letters, "ZLIB", sizeof old.letters) == 0
                   ? bounded_form(form_of_zdebug(&old), header)
                   : unknown;
    return (struct section_form){.size = has_contents(s, header) ? header->sh_size : 0};
}

static bool section_is_packed(const struct elf_sections *s, const Elf64_Shdr *header) {
    return (header->sh_flags & SHF_COMPRESSED) ||
           has_name(s, header, packed_prefix, sizeof packed_prefix - 1);
}

uint64_t elf_section_size(const struct elf_sections *s, const Elf64_Shdr *header) {
    return elf_section_form(s, header).size;
}

/* Inflates `[at, end)` of the file through `stream`, whose output has been set. Returns true if the
 * output is full in the end. */
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

static bool inflate_section(const struct elf_sections *s, const Elf64_Shdr *header, uint64_t head,
                            uint8_t *to, uint64_t size) {
    z_stream stream = {.next_out = to, .avail_out = (uInt)size};
    if (size > UINT32_MAX || inflateInit(&stream) != Z_OK)
        return false;
    const bool done =
        inflate_range(s, header->sh_offset + head, header->sh_offset + header->sh_size, &stream);
    inflateEnd(&stream);
    return done;
}

/* Decompresses by libzstd, which gets all packed bytes at once and so writes into `to` alone; as a
 * stream it would allocate a window as large as the contents. More packed bytes than libzstd writes
 * at most for that size are refused. */
static bool decompress_section(const struct elf_sections *s, const Elf64_Shdr *header,
                               uint64_t head, uint8_t *to, uint64_t size) {
    const uint64_t packed_size = header->sh_size - head;
    const size_t most = ZSTD_compressBound(size);
    void *const packed = !ZSTD_isError(most) && packed_size <= most ? malloc(packed_size) : NULL;
    const bool done = packed && elf_section_read_raw(s, header, head, packed, packed_size) &&
                      ZSTD_decompress(to, size, packed, packed_size) == size;
    free(packed);
    return done;
}

bool elf_section_read(const struct elf_sections *s, const Elf64_Shdr *header, uint8_t *to,
                      uint64_t size) {
    const struct section_form form = elf_section_form(s, header);
    if (form.packing == PACKING_NONE)
        return elf_sections_read_at(s, header->sh_offset, to, size);
    if (form.size == 0 || size != form.size)
        return false;
    return form.packing == PACKING_ZSTD ? decompress_section(s, header, form.head, to, size)
                                        : inflate_section(s, header, form.head, to, size);
}

bool elf_section_read_raw(const struct elf_sections *s, const Elf64_Shdr *header, uint64_t at,
                          void *to, size_t size) {
    return has_contents(s, header) && at <= header->sh_size && size <= header->sh_size - at &&
           elf_sections_read_at(s, header->sh_offset + at, to, size);
}

bool elf_section_read_part(const struct elf_sections *s, const Elf64_Shdr *header, uint64_t at,
                           void *to, size_t size) {
    return !section_is_packed(s, header) && elf_section_read_raw(s, header, at, to, size);
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
