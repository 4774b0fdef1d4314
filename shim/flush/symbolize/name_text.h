/* Builds a readable name piece by piece, within a bound. Context: flush. */
#ifndef OTELPROF_NAME_TEXT_H
#define OTELPROF_NAME_TEXT_H

#include <stdbool.h>
#include <stddef.h>

enum { MAX_NAME_TEXT = 4096 };

struct name_text {
    size_t length;
    bool failed; /* the name is too long */
    char text[MAX_NAME_TEXT];
};

static inline void name_text_add(struct name_text *to, const char *piece, size_t size) {
    to->failed |= size >= MAX_NAME_TEXT - to->length;
    if (to->failed)
        return;
    for (size_t i = 0; i < size; i++)
        to->text[to->length++] = piece[i];
    to->text[to->length] = 0;
}

static inline void name_text_add_byte(struct name_text *to, char byte) {
    name_text_add(to, &byte, 1);
}

#endif
