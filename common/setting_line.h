/* Parses a line KEY=VALUE: one rule for configuration files and for settings at run time.
 *
 * A line ends at a newline, which may have a carriage return before it. Spaces and tabs around the
 * line, the key and the value are ignored; so are blank lines, and lines that begin with `#` or
 * `;`. Context: any. Async-signal-safe: yes.
 */
#ifndef OTELPROF_SETTING_LINE_H
#define OTELPROF_SETTING_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

struct part {
    const char *at;
    size_t size;
};

static inline bool part_is_blank(char c) {
    return c == ' ' || c == '\t';
}

static inline struct part part_trim(struct part part) {
    while (part.size && part_is_blank(*part.at))
        part.at++, part.size--;
    while (part.size && part_is_blank(part.at[part.size - 1]))
        part.size--;
    return part;
}

/* Returns the significant part of a line; `size`: its length without the newline. */
static inline struct part setting_line(const char *text, size_t size) {
    const bool has_return = size && text[size - 1] == '\r';
    return part_trim((struct part){text, size - has_return});
}

static inline bool setting_is_nothing(struct part line) {
    return line.size == 0 || *line.at == '#' || *line.at == ';';
}

/* Splits a line. Returns false if it has no `=`; then the key is the whole line. */
static inline bool setting_split(struct part line, struct part *key, struct part *value) {
    const char *const equals = line.size ? memchr(line.at, '=', line.size) : NULL;
    const size_t before = equals ? (size_t)(equals - line.at) : line.size;
    *key = part_trim((struct part){line.at, before});
    *value = equals ? part_trim((struct part){equals + 1, line.size - before - 1})
                    : (struct part){line.at, 0};
    return equals;
}

#endif
