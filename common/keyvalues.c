#include "keyvalues.h"

#include "text_numbers.h"

#include <string.h>

static bool is_blank(char c) {
    return c == ' ' || c == '\t';
}

static char *trim(char *text) {
    while (is_blank(*text))
        text++;
    size_t length = strlen(text);
    while (length && is_blank(text[length - 1]))
        length--;
    text[length] = 0;
    return text;
}

/* --- checking --- */

static bool is_escape(const char *at, const char *end) {
    return end - at > 2 && number_digit(at[1]) < NO_DIGIT && number_digit(at[2]) < NO_DIGIT &&
           (at[1] != '0' || at[2] != '0');
}

static bool escapes_are_valid(const char *at, const char *end) {
    for (; at < end; at++)
        if (*at == '%' && !is_escape(at, end))
            return false;
    return true;
}

static bool is_all_blank(const char *at, const char *end) {
    while (at < end && is_blank(*at))
        at++;
    return at == end;
}

static bool element_is_valid(const char *at, const char *end) {
    const char *const equals = memchr(at, '=', (size_t)(end - at));
    if (!equals)
        return is_all_blank(at, end);
    return !is_all_blank(at, equals) && escapes_are_valid(at, equals) &&
           escapes_are_valid(equals, end);
}

bool keyvalues_are_valid(const char *text) {
    for (;;) {
        const char *const end = text + strcspn(text, ",");
        if (!element_is_valid(text, end))
            return false;
        if (!*end)
            return true;
        text = end + 1;
    }
}

/* --- decoding what is valid --- */

/* Decodes the text in place: decoding never makes it longer. */
static void decode(char *text) {
    char *to = text;
    for (const char *from = text; *from; from++) {
        if (*from != '%') {
            *to++ = *from;
            continue;
        }
        *to++ = (char)(number_digit(from[1]) * 16 + number_digit(from[2]));
        from += 2;
    }
    *to = 0;
}

static void visit_element(char *element, keyvalues_visit *visit, void *arg) {
    char *const equals = strchr(element, '=');
    if (!equals)
        return;
    *equals = 0;
    char *const key = trim(element);
    char *const value = trim(equals + 1);
    decode(key);
    decode(value);
    visit(arg, key, value);
}

bool keyvalues_parse(const char *text, char *scratch, keyvalues_visit *visit, void *arg) {
    if (!keyvalues_are_valid(text))
        return false;
    memcpy(scratch, text, strlen(text) + 1);
    for (char *element = scratch; element;) {
        char *const comma = strchr(element, ',');
        if (comma)
            *comma = 0;
        visit_element(element, visit, arg);
        element = comma ? comma + 1 : NULL;
    }
    return true;
}
