#include "object_file.h"

#include "open_flags.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { MOST_SEGMENTS = 64 };

static bool read_at(int file, void *to, size_t size, uint64_t at) {
    return syscall(SYS_pread64, file, to, size, at) == (long)size;
}

static bool read_object_header(int file, ElfW(Ehdr) * header) {
    return read_at(file, header, sizeof *header, 0) &&
           memcmp(header->e_ident, ELFMAG, SELFMAG) == 0 &&
           header->e_phentsize == sizeof(ElfW(Phdr)) && header->e_phnum <= MOST_SEGMENTS;
}

static bool has_its_segments(int file, uint64_t size) {
    ElfW(Ehdr) header;
    ElfW(Phdr) segments[MOST_SEGMENTS];
    if (!read_object_header(file, &header))
        return true;
    if (!read_at(file, segments, header.e_phnum * sizeof *segments, header.e_phoff))
        return false;
    for (unsigned i = 0; i < header.e_phnum; i++)
        if (segments[i].p_type == PT_LOAD &&
            (segments[i].p_offset > size || segments[i].p_filesz > size - segments[i].p_offset))
            return false;
    return true;
}

bool object_file_is_whole(const char *path) {
    struct stat status;
    const int file = (int)syscall(SYS_openat, AT_FDCWD, path, OPEN_TO_READ, 0);
    if (file < 0)
        return true;
    const bool whole = syscall(SYS_fstat, file, &status) != 0 || !S_ISREG(status.st_mode) ||
                       has_its_segments(file, (uint64_t)status.st_size);
    close(file);
    return whole;
}
