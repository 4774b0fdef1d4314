#include "keyvalues.h"

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

static int hex_digit(char c) {
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

/* In place; it only ever gets shorter. */
static bool decode(char *text) {
    char *to = text;
    for (const char *from = text; *from; from++) {
        if (*from != '%') {
            *to++ = *from;
            continue;
        }
        const int high = hex_digit(from[1]);
        const int low = high < 0 ? -1 : hex_digit(from[2]);
        if (low < 0 || (high == 0 && low == 0))
            return false;
        *to++ = (char)(high * 16 + low);
        from += 2;
    }
    *to = 0;
    return true;
}

/* One element; `visit` NULL only checks. */
static bool one(char *element, keyvalues_visit *visit, void *arg) {
    char *const equals = strchr(element, '=');
    if (!equals)
        return *trim(element) == 0;
    *equals = 0;
    char *const key = trim(element);
    char *const value = trim(equals + 1);
    if (!decode(key) || !decode(value) || !*key)
        return false;
    if (visit)
        visit(arg, key, value);
    return true;
}

static bool each(const char *text, char *scratch, keyvalues_visit *visit, void *arg) {
    memcpy(scratch, text, strlen(text) + 1);
    for (char *element = scratch; element;) {
        char *const comma = strchr(element, ',');
        if (comma)
            *comma = 0;
        if (!one(element, visit, arg))
            return false;
        element = comma ? comma + 1 : NULL;
    }
    return true;
}

bool keyvalues_parse(const char *text, char *scratch, keyvalues_visit *visit, void *arg) {
    return each(text, scratch, NULL, NULL) && each(text, scratch, visit, arg);
}
