#include "process_maps.h"

#include "process_file.h"

#include <stddef.h>
#include <unistd.h>

enum { LINE_BYTES = 160, PIECE_BYTES = 4096 };

static const char *read_hexadecimal(const char *text, uintptr_t *value) {
    *value = 0;
    for (;; text++) {
        const bool digit = *text >= '0' && *text <= '9';
        if (!digit && (*text < 'a' || *text > 'f'))
            return text;
        *value = *value << 4 | (uintptr_t)(digit ? *text - '0' : *text - 'a' + 10);
    }
}

/* Parses "55d0c0000000-55d0c0021000 rw-p ..." */
static struct process_mapping mapping_in(const char *line) {
    struct process_mapping mapping = {.end = 0};
    const char *const dash = read_hexadecimal(line, &mapping.start);
    mapping.rest = *dash == '-' ? read_hexadecimal(dash + 1, &mapping.end) : dash;
    return mapping;
}

bool process_maps_visit(bool (*visit)(void *arg, const struct process_mapping *mapping),
                        void *arg) {
    char piece[PIECE_BYTES];
    char line[LINE_BYTES];
    size_t length = 0;
    ssize_t size = 0;
    bool found = false;
    const int file = process_file_open(getpid(), "maps");
    while (file >= 0 && !found && (size = read(file, piece, sizeof piece)) > 0)
        for (ssize_t i = 0; i < size && !found; i++) {
            if (piece[i] != '\n') {
                if (length < sizeof line - 1)
                    line[length++] = piece[i];
                continue;
            }
            line[length] = 0;
            length = 0;
            const struct process_mapping mapping = mapping_in(line);
            found = visit(arg, &mapping);
        }
    if (file >= 0)
        close(file);
    return found;
}
