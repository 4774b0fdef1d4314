#include "started_file.h"

#include "bare_syscall.h"
#include "object_segments.h"
#include "open_flags.h"
#include "working_directory.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/syscall.h>

enum { NOTE_BYTES = 512 };

/* --- comparing a file with what was loaded --- */

static bool read_whole(int file, void *to, size_t size, uint64_t at) {
    return bare_syscall(SYS_pread64, file, (long)to, (long)size, (long)at, 0, 0) == (long)size;
}

/* Returns true if the file has the program headers that the kernel passes, and stores where it is
 * loaded. */
static bool has_loaded_headers(int file, const ElfW(Ehdr) * header,
                               struct object_segments *loaded) {
    ElfW(Phdr) found[MAX_OBJECT_SEGMENTS];
    const uintptr_t headers = getauxval(AT_PHDR);
    const size_t bytes = header->e_phnum * sizeof *found;
    if (!headers || header->e_phentsize != sizeof *found || header->e_phnum > MAX_OBJECT_SEGMENTS ||
        header->e_phnum != getauxval(AT_PHNUM) ||
        !read_whole(file, found, bytes, header->e_phoff) ||
        memcmp(found, (const void *)headers, bytes) != 0)
        return false;
    *loaded = (struct object_segments){(const ElfW(Phdr) *)headers, header->e_phnum, 0};
    for (size_t i = 0; i < header->e_phnum; i++)
        if (found[i].p_type == PT_LOAD && header->e_phoff >= found[i].p_offset &&
            header->e_phoff - found[i].p_offset < found[i].p_filesz) {
            loaded->bias = headers - found[i].p_vaddr - (header->e_phoff - found[i].p_offset);
            return true;
        }
    return false;
}

/* Returns true if the file has the same notes as memory. Compares the first NOTE_BYTES of each
 * segment of notes. */
static bool has_loaded_notes(int file, const struct object_segments *loaded) {
    uint8_t note[NOTE_BYTES];
    for (uint32_t i = 0; i < loaded->count; i++) {
        const ElfW(Phdr) *const part = &loaded->headers[i];
        const size_t size = part->p_filesz < NOTE_BYTES ? part->p_filesz : NOTE_BYTES;
        const uintptr_t address = loaded->bias + part->p_vaddr;
        if (part->p_type == PT_NOTE && (!object_is_readable(loaded, address, size) ||
                                        !read_whole(file, note, size, part->p_offset) ||
                                        memcmp(note, (const void *)address, size) != 0))
            return false;
    }
    return true;
}

static bool is_loaded_file(int file) {
    ElfW(Ehdr) header;
    struct object_segments loaded;
    return read_whole(file, &header, sizeof header, 0) &&
           memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 &&
           has_loaded_headers(file, &header, &loaded) &&
           loaded.bias + header.e_entry == getauxval(AT_ENTRY) && has_loaded_notes(file, &loaded);
}

/* Returns true if the file is the loaded program. Checks its type before opening it, because
 * opening a device may have effects. */
static bool is_program_file(const char *path) {
    struct stat status;
    if (bare_syscall(SYS_newfstatat, AT_FDCWD, (long)path, (long)&status, 0, 0, 0) != 0 ||
        !S_ISREG(status.st_mode))
        return false;
    const int file = (int)bare_syscall(SYS_openat, AT_FDCWD, (long)path, OPEN_TO_READ, 0, 0, 0);
    const bool is_loaded = file >= 0 && is_loaded_file(file);
    if (file >= 0)
        bare_syscall(SYS_close, file, 0, 0, 0, 0, 0);
    return is_loaded;
}

/* --- the name --- */

/* Writes the path of `name` in the working directory; "./name" counts as "name". Returns false if
 * the working directory is not known, or the path does not fit. */
static bool from_working_directory(char *path, size_t size, const char *name) {
    while (name[0] == '.' && name[1] == '/')
        name += 2 + strspn(name + 2, "/");
    if (!working_directory(path, size))
        return false;
    size_t length = strlen(path);
    length -= path[length - 1] == '/'; /* the root */
    const size_t rest = strlen(name) + 1;
    if (length + 1 + rest > size)
        return false;
    path[length] = '/';
    memcpy(path + length + 1, name, rest);
    return true;
}

static bool absolute_name(char *path, size_t size, const char *name) {
    const size_t bytes = strlen(name) + 1;
    if (name[0] != '/')
        return name[0] && from_working_directory(path, size, name);
    if (bytes > size)
        return false;
    memcpy(path, name, bytes);
    return true;
}

size_t started_file_path(char *path, size_t size) {
    const int saved = errno;
    const char *const name = (const char *)(uintptr_t)getauxval(AT_EXECFN);
    const bool is_found = name && absolute_name(path, size, name) && is_program_file(path);
    errno = saved;
    if (!is_found)
        path[0] = 0;
    return strlen(path);
}
