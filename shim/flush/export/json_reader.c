#include "json_reader.h"

#include "text_numbers.h"

#include <string.h>

enum { MAX_DEPTH = 32, NAME_BYTES = 64, JSON_NUMBER_BYTES = 32 };

/* --- characters --- */

static bool json_fail(struct json_reader *r) {
    r->failed = true;
    return false;
}

/* Returns the next character that is no blank, without consuming it; 0: the text has ended, or the
 * reader has failed.
 */
static char peek(struct json_reader *r) {
    while (r->at < r->end && memchr(" \t\r\n", *r->at, 4))
        r->at++;
    return r->failed || r->at == r->end ? 0 : *r->at;
}

static bool json_take(struct json_reader *r, char c) {
    if (peek(r) != c)
        return json_fail(r);
    r->at++;
    return true;
}

static bool take_word(struct json_reader *r, const char *word) {
    const size_t size = strlen(word);
    (void)peek(r);
    if (r->failed || (size_t)(r->end - r->at) < size || memcmp(r->at, word, size) != 0)
        return json_fail(r);
    r->at += size;
    return true;
}

static bool take_null(struct json_reader *r) {
    return peek(r) == 'n' && take_word(r, "null");
}

/* --- strings --- */

struct target {
    char *text;
    size_t size; /* size of the buffer */
    size_t used;
    bool full;
};

/* Stores only complete characters, so that a cut string is still UTF-8. */
static void json_keep(struct target *target, const char *bytes, size_t count) {
    target->full = target->full || target->size - target->used <= count;
    if (target->full)
        return;
    memcpy(target->text + target->used, bytes, count);
    target->used += count;
}

static void keep_code_point(struct target *target, uint32_t c) {
    static const uint8_t leads[] = {0, 0xc0, 0xe0, 0xf0};
    const int more = c < 0x80 ? 0 : c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
    char bytes[4];
    for (int i = more; i > 0; i--, c >>= 6)
        bytes[i] = (char)(0x80 | (c & 63));
    bytes[0] = (char)(leads[more] | c);
    json_keep(target, bytes, (size_t)more + 1);
}

/* Reads four hexadecimal digits. */
static bool take_code_unit(struct json_reader *r, uint32_t *unit) {
    *unit = 0;
    for (int i = 0; i < 4; i++) {
        const unsigned digit = r->at < r->end ? number_digit(*r->at) : NO_DIGIT;
        if (digit == NO_DIGIT)
            return json_fail(r);
        *unit = *unit << 4 | digit;
        r->at++;
    }
    return true;
}

static bool is_high_surrogate(uint32_t unit) {
    return unit >= 0xd800 && unit < 0xdc00;
}

static bool is_low_surrogate(uint32_t unit) {
    return unit >= 0xdc00 && unit < 0xe000;
}

/* Reads the digits behind "\u". A pair of surrogates is one character. */
static bool take_unicode(struct json_reader *r, struct target *target) {
    uint32_t first;
    uint32_t second;
    if (!take_code_unit(r, &first))
        return false;
    while (is_high_surrogate(first) && r->end - r->at >= 2 && memcmp(r->at, "\\u", 2) == 0) {
        r->at += 2;
        if (!take_code_unit(r, &second))
            return false;
        if (is_low_surrogate(second)) {
            keep_code_point(target, 0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00));
            return true;
        }
        keep_code_point(target, 0xfffd);
        first = second;
    }
    keep_code_point(target, !first || (first >= 0xd800 && first < 0xe000) ? 0xfffd : first);
    return true;
}

static bool take_escape(struct json_reader *r, struct target *target) {
    static const char names[] = "\"\\/bfnrt";
    static const char meanings[] = "\"\\/\b\f\n\r\t";
    if (r->at == r->end)
        return json_fail(r);
    const char c = *r->at++;
    if (c == 'u')
        return take_unicode(r, target);
    const char *const name = c ? strchr(names, c) : NULL;
    if (!name)
        return json_fail(r);
    json_keep(target, &meanings[name - names], 1);
    return true;
}

static bool take_plain(struct json_reader *r, struct target *target) {
    const unsigned char lead = (unsigned char)*r->at;
    if (lead < 0x20)
        return json_fail(r);
    size_t length = 1;
    /* length of the character that begins with `lead`; a stray byte counts as one */
    const size_t expected = lead < 0xc0 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
    while (length < expected && r->at + length < r->end && ((unsigned char)r->at[length] >> 6) == 2)
        length++;
    json_keep(target, r->at, length);
    r->at += length;
    return true;
}

static bool take_string(struct json_reader *r, struct target *target) {
    if (!json_take(r, '"'))
        return false;
    while (!r->failed && r->at < r->end && *r->at != '"') {
        if (*r->at == '\\') {
            r->at++;
            (void)take_escape(r, target);
        } else {
            (void)take_plain(r, target);
        }
    }
    if (target->size)
        target->text[target->used] = 0;
    return json_take(r, '"');
}

bool json_string(struct json_reader *r, char *text, size_t size) {
    struct target target = {text, size, 0, false};
    return take_null(r) || take_string(r, &target);
}

/* --- numbers --- */

/* Consumes the characters of a JSON number, even if they form no valid number. */
static size_t take_number(struct json_reader *r, char text[static JSON_NUMBER_BYTES]) {
    size_t size = 0;
    (void)peek(r);
    while (r->at < r->end && *r->at && strchr("0123456789+-.eE", *r->at)) {
        if (size < JSON_NUMBER_BYTES - 1)
            text[size++] = *r->at;
        r->at++;
    }
    text[size] = 0;
    return size;
}

static bool parse_int64(const char *text, int64_t *value) {
    const bool negative = *text == '-';
    uint64_t number;
    const char *const end = number_read(text + negative, 10, &number);
    if (!end || *end || number > (uint64_t)INT64_MAX + negative)
        return false;
    *value = (int64_t)(negative ? 0 - number : number);
    return true;
}

bool json_int64(struct json_reader *r, int64_t *value) {
    char text[JSON_NUMBER_BYTES];
    if (take_null(r))
        return true;
    if (peek(r) == '"') {
        struct target target = {text, sizeof text, 0, false};
        if (!take_string(r, &target))
            return false;
    } else {
        (void)take_number(r, text);
    }
    return !r->failed && (parse_int64(text, value) || json_fail(r));
}

/* --- objects and lists --- */

static bool json_enter(struct json_reader *r, char c) {
    return json_take(r, c) && (r->depth++ < MAX_DEPTH || json_fail(r));
}

/* Returns true if another item follows the item that was read; false at the end of the object or
 * list, or after an error. Consumes the comma, or `close`. */
static bool json_has_next(struct json_reader *r, char close) {
    if (peek(r) == ',')
        return json_take(r, ',');
    (void)json_take(r, close);
    r->depth--;
    return false;
}

static bool is_empty(struct json_reader *r, char close) {
    if (peek(r) != close)
        return false;
    r->at++;
    r->depth--;
    return true;
}

bool json_object(struct json_reader *r, json_member *member, void *arg) {
    char name[NAME_BYTES];
    if (take_null(r))
        return true;
    if (!json_enter(r, '{') || is_empty(r, '}'))
        return !r->failed;
    do {
        struct target target = {name, sizeof name, 0, false};
        if (take_string(r, &target) && json_take(r, ':'))
            member(arg, r, name);
    } while (!r->failed && json_has_next(r, '}'));
    return !r->failed;
}

static bool skip_list(struct json_reader *r) {
    if (!json_enter(r, '[') || is_empty(r, ']'))
        return !r->failed;
    do
        (void)json_skip(r);
    while (!r->failed && json_has_next(r, ']'));
    return !r->failed;
}

static void skip_member(void *unused, struct json_reader *r, const char *name) {
    (void)unused;
    (void)name;
    (void)json_skip(r);
}

bool json_skip(struct json_reader *r) {
    char text[JSON_NUMBER_BYTES];
    struct target nowhere = {NULL, 0, 0, true};
    switch (peek(r)) {
    case '{':
        return json_object(r, skip_member, NULL);
    case '[':
        return skip_list(r);
    case '"':
        return take_string(r, &nowhere);
    case 't':
        return take_word(r, "true");
    case 'f':
        return take_word(r, "false");
    case 'n':
        return take_word(r, "null");
    default:
        return take_number(r, text) > 0 || json_fail(r);
    }
}

bool json_complete(struct json_reader *r) {
    return !peek(r) && !r->failed && r->at == r->end;
}
