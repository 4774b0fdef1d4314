#include "shown_text.h"

#include "text_numbers.h"
#include "utf8.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum { LONGEST_SEQUENCE = 4, ESCAPED_BYTES = 4, DOTS = 3 };

/* Returns true if the character can be shown; false for C0 and DEL, C1, line and paragraph
 * separators, embeddings, overrides and isolates. */
static bool shown_is_plain(uint32_t code) {
    return code >= 0x20 && (code < 0x7f || code > 0x9f) && (code < 0x2028 || code > 0x202e) &&
           (code < 0x2066 || code > 0x2069);
}

/* Returns the length of the character at `at` if it can be shown unchanged; 0: its first byte
 * cannot be shown unchanged. */
static size_t plain_length(const char *at, size_t left) {
    char sequence[LONGEST_SEQUENCE + 1] = {0}; /* a copy, so that no byte behind the text is read */
    memcpy(sequence, at, left < LONGEST_SEQUENCE ? left : LONGEST_SEQUENCE);
    const size_t length = utf8_sequence(sequence);
    return length && shown_is_plain(utf8_code_point(sequence, length)) ? length : 0;
}

static void escape(char *to, char byte) {
    char escaped[ESCAPED_BYTES + 1] = "\\x";
    (void)number_write_bytes(escaped + 2, &byte, 1);
    memcpy(to, escaped, ESCAPED_BYTES);
}

/* Returns how many bytes of `text` fit into the room when shown, and stores in `*length` how many
 * bytes they take when shown. If `to` is NULL, only counts them. */
static size_t write_shown(char *to, size_t room, const char *text, size_t size, size_t *length) {
    size_t at = 0;
    *length = 0;
    while (at < size) {
        const size_t plain = plain_length(text + at, size - at);
        const size_t needed = plain ? plain : ESCAPED_BYTES;
        if (needed > room - *length)
            break;
        if (to && plain)
            memcpy(to + *length, text + at, plain);
        else if (to)
            escape(to + *length, text[at]);
        *length += needed;
        at += plain ? plain : 1;
    }
    return at;
}

size_t shown_text(char *to, size_t room, const char *text, size_t size) {
    size_t length;
    size = strnlen(text, size);
    if (write_shown(NULL, room, text, size, &length) == size) {
        (void)write_shown(to, room, text, size, &length);
        return length;
    }
    (void)write_shown(to, room > DOTS ? room - DOTS : 0, text, size, &length);
    const size_t dots = room - length < DOTS ? room - length : DOTS;
    memcpy(to + length, "...", dots);
    return length + dots;
}

size_t shown_plain(const char *text, size_t size) {
    size_t at = 0;
    size_t length;
    size = strnlen(text, size);
    while (at < size && (length = plain_length(text + at, size - at)) > 0)
        at += length;
    return at;
}
