/* Reads the sections of one ELF file, piece by piece.
 *
 * Any user may have written the file, and it may change while it is read. So no part of it is
 * mapped: the section headers are copied once, and sections only on request, by pread(). Every size
 * is checked against the file's before memory is taken; the size that a compressed section claims
 * is checked against the most that its bytes can become. Sections may be packed by zlib or zstd
 * (SHF_COMPRESSED), or be .zdebug_* of old linkers. A file that has been shortened gives a short
 * read, which is an error like any other. Only 64-bit little-endian files are read. Context: flush.
 */
#ifndef OTELPROF_ELF_SECTIONS_H
#define OTELPROF_ELF_SECTIONS_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

/* Holds the sections of a file, or of bytes in memory. Closed: all zero, and descriptor -1. */
struct elf_sections {
    int descriptor;
    uint8_t *memory; /* malloc'ed contents; NULL: the sections are of a file */
    uint64_t size;   /* size of the file, or of the bytes */
    struct stat status;
    Elf64_Shdr *headers;
    uint32_t count;
    char *names;
    size_t names_size; /* the last byte is 0 */
};

void elf_sections_init(struct elf_sections *sections);

/* Opens a file. Takes ownership of `descriptor`, of a regular file, even on failure. Returns false
 * if it is no ELF file, or not within bounds; then `sections` is closed. */
bool elf_sections_open(struct elf_sections *sections, int descriptor);

/* Opens malloc'ed bytes, and takes ownership of them, as elf_sections_open() opens a file. */
bool elf_sections_of_memory(struct elf_sections *sections, void *bytes, size_t size);

static inline bool elf_sections_are_open(const struct elf_sections *sections) {
    return sections->headers != NULL;
}

/* Closes the sections; may be called again for closed sections. */
void elf_sections_close(struct elf_sections *sections);

/* Returns the section of that name, or NULL if there is none with contents. A section .debug_* may
 * have the name .zdebug_* instead. */
const Elf64_Shdr *elf_section_named(const struct elf_sections *sections, const char *name);

enum packing { PACKING_NONE, PACKING_ZLIB, PACKING_ZSTD, PACKING_UNKNOWN };

/* Describes the form of a section's contents. */
struct section_form {
    enum packing packing;
    uint64_t size; /* size of the inflated contents; 0: they cannot be read */
    uint64_t head; /* number of bytes before the packed contents */
};
struct section_form elf_section_form(const struct elf_sections *sections, const Elf64_Shdr *header);

/* Returns the size of the contents, inflated. 0: they cannot be read. */
uint64_t elf_section_size(const struct elf_sections *sections, const Elf64_Shdr *header);

/* Reads, and inflates, the whole section to `to`. `size`: the result of elf_section_size(). Returns
 * false if the section cannot be read. */
bool elf_section_read(const struct elf_sections *sections, const Elf64_Shdr *header, uint8_t *to,
                      uint64_t size);

/* Reads part of a section as it is in the file: packed bytes, if the section is compressed. Returns
 * false if the section is shorter, or cannot be read. */
bool elf_section_read_raw(const struct elf_sections *sections, const Elf64_Shdr *header,
                          uint64_t at, void *to, size_t size);

/* Reads part of the contents. Returns false if the section is shorter or compressed, or cannot be
 * read. */
bool elf_section_read_part(const struct elf_sections *sections, const Elf64_Shdr *header,
                           uint64_t at, void *to, size_t size);

/* Returns a malloc'ed copy of a small section, which the caller frees; NULL: it is larger than
 * `max`, or cannot be read. */
uint8_t *elf_section_copy(const struct elf_sections *sections, const Elf64_Shdr *header, size_t max,
                          size_t *size);

/* Stores the GNU build id, and returns its size in bytes; 0: there is none. */
size_t elf_sections_build_id(const struct elf_sections *sections, uint8_t id[64]);

#endif
