#include "python_text.h"

enum { REPLACEMENT = 0xfffd, LAST_CHARACTER = 0x10ffff };
enum { CONTINUATION = 0x80, CONTINUATION_BITS = 6, CONTINUATION_MASK = 63 };

/* The lowest byte is the first. */
static uint32_t character_at(const uint8_t *bytes, uint32_t size) {
    uint32_t character = 0;
    for (uint32_t i = 0; i < size; i++)
        character |= (uint32_t)bytes[i] << 8 * i;
    const uint32_t surrogates = character >> 11;
    if (character == 0 || surrogates == 0xd800 >> 11 || character > LAST_CHARACTER)
        return REPLACEMENT;
    return character;
}

static char *put_continuation(char *text, uint32_t character, unsigned left) {
    while (left--)
        *text++ =
            (char)(CONTINUATION | (character >> left * CONTINUATION_BITS & CONTINUATION_MASK));
    return text;
}

static char *put_utf8(char *text, uint32_t character) {
    if (character < 0x80) {
        *text = (char)character;
        return text + 1;
    }
    if (character < 0x800) {
        *text = (char)(0xc0 | character >> 6);
        return put_continuation(text + 1, character, 1);
    }
    if (character < 0x10000) {
        *text = (char)(0xe0 | character >> 12);
        return put_continuation(text + 1, character, 2);
    }
    *text = (char)(0xf0 | character >> 18);
    return put_continuation(text + 1, character, 3);
}

void python_text(const uint8_t *bytes, uint32_t size, uint32_t character, char *text) {
    for (uint32_t i = 0; character && i + character <= size; i += character)
        text = put_utf8(text, character_at(bytes + i, character));
    *text = 0;
}
