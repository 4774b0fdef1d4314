#include "process_maps.h"

#include "arch_syscall.h"
#include "process_file.h"
#include "text_numbers.h"

#include <limits.h>
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>

enum {
    FIELDS_BYTES = 256, /* more than the fields before the name, and " (deleted)" behind it, need */
    LINE_BYTES = PATH_MAX + FIELDS_BYTES
};

/* Parses a line such as "55d0c0000000-55d0c0021000 rw-p ..." */
struct process_mapping process_mapping_parse(const char *line) {
    struct process_mapping mapping = {.end = 0};
    const char *const dash = number_read(line, 16, &mapping.start);
    mapping.rest = dash && *dash == '-' ? number_read(dash + 1, 16, &mapping.end) : NULL;
    if (!mapping.rest)
        mapping.rest = "";
    return mapping;
}

const char *process_mapping_name(const struct process_mapping *mapping) {
    enum { FIELDS = 4 }; /* permissions, offset, device, inode */
    const char *at = mapping->rest + strspn(mapping->rest, " ");
    for (int field = 0; field < FIELDS; field++) {
        at += strcspn(at, " ");
        at += strspn(at, " ");
    }
    return at;
}

bool process_maps_visit_file(int file,
                             bool (*visit)(void *arg, const struct process_mapping *mapping),
                             void *arg) {
    char text[LINE_BYTES] = {0};
    size_t kept = 0;     /* bytes of a line whose end is not read yet */
    bool is_cut = false; /* the beginning of that line was visited: it is too long for `text` */
    bool found = false;
    while (!found) {
        const long size = arch_system_call(SYS_read, file, (long)(text + kept),
                                           (long)(sizeof text - kept), 0, 0, 0);
        if (size <= 0)
            break;
        const size_t filled = kept + (size_t)size;
        size_t line = 0;
        for (size_t i = kept; i < filled && !found; i++) {
            const bool is_end = text[i] == '\n';
            if (!is_end && i - line < sizeof text - 1)
                continue;
            text[i] = 0;
            const struct process_mapping mapping = process_mapping_parse(text + line);
            found = !is_cut && visit(arg, &mapping);
            is_cut = !is_end;
            line = i + 1;
        }
        kept = filled - line;
        for (size_t i = 0; i < kept; i++) /* copies by a loop, as process_file_has() does */
            text[i] = text[line + i];
    }
    return found;
}

bool process_maps_visit(bool (*visit)(void *arg, const struct process_mapping *mapping),
                        void *arg) {
    const int file = process_file_open_path("/proc/thread-self/maps");
    if (file < 0)
        return false;
    const bool found = process_maps_visit_file(file, visit, arg);
    process_file_close(file);
    return found;
}
