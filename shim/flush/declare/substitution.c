#include "substitution.h"

#include <stdbool.h>
#include <string.h>

enum { NAME_BYTES = 256 };

struct output {
    char *at;
    char *end; /* leaves one byte for the NUL */
    bool whole;
};

static void substitution_add(struct output *out, const char *text, size_t size) {
    if (size > (size_t)(out->end - out->at)) {
        out->whole = false;
        return;
    }
    memcpy(out->at, text, size);
    out->at += size;
}

/* Replaces isalpha(), which depends on the locale. */
static bool is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* Returns the length of the variable name at `at`. */
static size_t name_length(const char *at, const char *end) {
    const char *const start = at;
    if (at == end || !(is_letter(*at) || *at == '_'))
        return 0;
    while (at < end && (is_letter(*at) || *at == '_' || (*at >= '0' && *at <= '9')))
        at++;
    return (size_t)(at - start);
}

/* Adds the value of a reference, given the text between its braces: NAME or NAME:-default, after
 * the prefix "env:" if it has one. "env:-default" is a variable called env with a default. */
static bool add_reference(struct output *out, const char *at, const char *end,
                          substitution_look_up *look_up) {
    static const char environment[] = "env:";
    const size_t prefix = sizeof environment - 1;
    char name[NAME_BYTES];
    if ((size_t)(end - at) > prefix && memcmp(at, environment, prefix) == 0 && at[prefix] != '-')
        at += prefix;
    const size_t length = name_length(at, end);
    const char *const rest = at + length;
    const bool has_default = end - rest >= 2 && memcmp(rest, ":-", 2) == 0;
    if (length == 0 || length >= sizeof name || (rest != end && !has_default))
        return false;
    memcpy(name, at, length);
    name[length] = 0;
    const char *const value = look_up(name);
    if (value && *value)
        substitution_add(out, value, strlen(value));
    else if (has_default)
        substitution_add(out, rest + 2, (size_t)(end - rest - 2));
    return true;
}

/* Adds a part of the text that has no "$$". */
static bool add_part(struct output *out, const char *at, const char *end,
                     substitution_look_up *look_up) {
    while (at < end) {
        const char *const dollar = memchr(at, '$', (size_t)(end - at));
        const bool opens = dollar && end - dollar > 2 && dollar[1] == '{' && dollar[2] != '}';
        const char *const close = opens ? memchr(dollar, '}', (size_t)(end - dollar)) : NULL;
        const char *const plain = close ? dollar : dollar ? dollar + 1 : end;
        substitution_add(out, at, (size_t)(plain - at));
        at = plain;
        if (!close)
            continue;
        if (!add_reference(out, dollar + 2, close, look_up))
            return false;
        at = close + 1;
    }
    return true;
}

enum substitution substitute(const char *text, substitution_look_up *look_up, char *out,
                             size_t size) {
    struct output output = {out, out + size - 1, true};
    bool formed = true;
    for (const char *at = text; formed && at;) {
        const char *const escape = strstr(at, "$$");
        formed = add_part(&output, at, escape ? escape : at + strlen(at), look_up);
        if (escape)
            substitution_add(&output, "$", 1);
        at = escape ? escape + 2 : NULL;
    }
    *output.at = 0;
    if (!formed)
        return SUBSTITUTION_MALFORMED;
    return output.whole ? SUBSTITUTED : SUBSTITUTION_TOO_LONG;
}
