#include "program_path.h"

#include "bare_syscall.h"
#include "process_maps.h"
#include "started_file.h"
#include "text_numbers.h"

#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/syscall.h>

/* Reads a link by a bare call, because another preload may replace readlink(). */
size_t program_link(const char *link, char *path, size_t size) {
    const long length =
        bare_syscall(SYS_readlinkat, AT_FDCWD, (long)link, (long)path, (long)size - 1, 0, 0);
    const size_t fits = length > 0 && (size_t)length < size - 1 ? (size_t)length : 0;
    path[fits] = 0;
    return path[0] == '/' ? fits : (path[0] = 0);
}

/* --- run by the loader --- */

bool program_is_run_by_loader(void) {
    return getauxval(AT_BASE) == 0;
}

struct mapped_program {
    uint64_t headers; /* the value of AT_PHDR: address of the program headers */
    char *path;
    size_t size;
    size_t length;
};

static bool read_mapped_path(void *arg, const struct process_mapping *mapping) {
    static const char folder[] = "/proc/self/map_files/";
    struct mapped_program *const program = arg;
    char link[sizeof folder + 2 * sizeof "-0123456789abcdef"];
    if (program->headers < mapping->start || program->headers >= mapping->end)
        return false;
    memcpy(link, folder, sizeof folder);
    char *const dash = number_write(link + sizeof folder - 1, 16, mapping->start);
    *dash = '-';
    *number_write(dash + 1, 16, mapping->end) = 0;
    program->length = program_link(link, program->path, program->size);
    if (program->length)
        return true;
    /* takes the path from the line, because a sandbox may lack that folder */
    const char *const path = strchr(mapping->rest, '/');
    const size_t length = path ? strlen(path) : 0;
    if (length == 0 || length >= program->size)
        return true;
    memcpy(program->path, path, length + 1);
    program->length = length;
    return true;
}

/* --- the program's file --- */

size_t program_path(char *path, size_t size) {
    struct mapped_program program = {getauxval(AT_PHDR), path, size, 0};
    path[0] = 0;
    if (!program_is_run_by_loader()) {
        /* /proc/self has no executable after the main thread's end; an emulator of single programs
         * (qemu-user) replaces that link alone */
        size_t length = program_link("/proc/self/exe", path, size);
        if (!length)
            length = program_link("/proc/thread-self/exe", path, size);
        return length ? length : started_file_path(path, size);
    }
    (void)process_maps_visit(read_mapped_path, &program);
    return program.length;
}
