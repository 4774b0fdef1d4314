#include "process_maps.h"

#include "process_file.h"
#include "text_numbers.h"

#include <stddef.h>
#include <unistd.h>

enum { LINE_BYTES = 160, PIECE_BYTES = 4096 };

/* Parses a line such as "55d0c0000000-55d0c0021000 rw-p ..." */
static struct process_mapping mapping_in(const char *line) {
    struct process_mapping mapping = {.end = 0};
    const char *const dash = number_read(line, 16, &mapping.start);
    mapping.rest = dash && *dash == '-' ? number_read(dash + 1, 16, &mapping.end) : NULL;
    if (!mapping.rest)
        mapping.rest = "";
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
        process_file_close(file);
    return found;
}
