#include "mapping_protection.h"

#include "process_file.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PIECE_BYTES = 4096, LINE_BYTES = 64 }; /* of a line the beginning matters */

/* Lines of the file, of which only the first bytes are kept. */
struct line {
    char text[LINE_BYTES];
    size_t length;
};

static const char *read_hex(const char *text, uintptr_t *value) {
    *value = 0;
    for (;; text++) {
        const bool digit = *text >= '0' && *text <= '9';
        if (!digit && (*text < 'a' || *text > 'f'))
            return text;
        *value = *value << 4 | (uintptr_t)(digit ? *text - '0' : *text - 'a' + 10);
    }
}

/* "55d0c0000000-55d0c0021000 rw-p ...". false: this is not the mapping around `start`. */
static bool is_around(const struct line *line, uintptr_t start, uintptr_t end, int *protection) {
    uintptr_t from = 0;
    uintptr_t to = 0;
    const char *const dash = read_hex(line->text, &from);
    const char *const mode = *dash == '-' ? read_hex(dash + 1, &to) : dash;
    if (*mode != ' ' || start < from || start >= to)
        return false;
    *protection = (mode[1] == 'r' ? PROT_READ : 0) | (mode[2] == 'w' ? PROT_WRITE : 0) |
                  (mode[3] == 'x' ? PROT_EXEC : 0);
    if (end > to || mode[4] != 'p')
        *protection = -1;
    return true;
}

static bool add(struct line *line, char c) {
    if (line->length < sizeof line->text - 1)
        line->text[line->length++] = c;
    return c == '\n';
}

int mapping_protection(uintptr_t start, uintptr_t end) {
    char piece[PIECE_BYTES];
    struct line line = {.length = 0};
    int protection = -1;
    bool found = false;
    ssize_t size = 0;
    const int file = process_file_open(getpid(), "maps");
    while (file >= 0 && !found && (size = read(file, piece, sizeof piece)) > 0) {
        for (ssize_t i = 0; i < size && !found; i++) {
            if (!add(&line, piece[i]))
                continue;
            line.text[line.length] = 0;
            found = is_around(&line, start, end, &protection);
            line.length = 0;
        }
    }
    if (file >= 0)
        close(file);
    return protection;
}
