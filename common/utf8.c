#include "utf8.h"

#include <stdbool.h>

static bool is_continuation(unsigned char byte) {
    return (byte & 0xc0) == 0x80;
}

/* Returns the length of a sequence. Reads no byte behind a terminating NUL, which is no
 * continuation byte. */
size_t utf8_sequence(const char *text) {
    const unsigned char *const s = (const unsigned char *)text;
    if (s[0] < 0x80)
        return 1;
    if (s[0] >= 0xc2 && s[0] <= 0xdf)
        return is_continuation(s[1]) ? 2 : 0;
    if (s[0] >= 0xe0 && s[0] <= 0xef) {
        const unsigned char low = s[0] == 0xe0 ? 0xa0 : 0x80;
        const unsigned char high = s[0] == 0xed ? 0x9f : 0xbf; /* excludes surrogates */
        return s[1] >= low && s[1] <= high && is_continuation(s[2]) ? 3 : 0;
    }
    if (s[0] >= 0xf0 && s[0] <= 0xf4) {
        const unsigned char low = s[0] == 0xf0 ? 0x90 : 0x80;
        /* excludes characters above U+10FFFF */
        const unsigned char high = s[0] == 0xf4 ? 0x8f : 0xbf;
        return s[1] >= low && s[1] <= high && is_continuation(s[2]) && is_continuation(s[3]) ? 4
                                                                                             : 0;
    }
    return 0;
}

uint32_t utf8_code_point(const char *sequence, size_t length) {
    static const unsigned char payload[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
    uint32_t code = (unsigned char)sequence[0] & payload[length];
    for (size_t i = 1; i < length; i++)
        code = code << 6 | ((unsigned char)sequence[i] & 0x3f);
    return code;
}

size_t utf8_cut(const char *text, size_t size) {
    enum { LONGEST_SEQUENCE = 4 };
    size_t cut = size;
    while (cut && size - cut < LONGEST_SEQUENCE && is_continuation((unsigned char)text[cut]))
        cut--;
    return cut && size - cut < LONGEST_SEQUENCE ? cut : size;
}

void utf8_make_valid(char *text) {
    for (char *at = text; *at;) {
        const size_t length = utf8_sequence(at);
        if (!length)
            *at = '?';
        at += length ? length : 1;
    }
}
