#include "written_text.h"

#include "clock.h"
#include "shown_text.h"
#include "utf8.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void text_add(struct wire *text, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    const int size = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    if (size <= 0 || !wire_reserve(text, (size_t)size + 1))
        return;
    va_start(arguments, format);
    (void)vsnprintf((char *)text->bytes + text->size, (size_t)size + 1, format, arguments);
    va_end(arguments);
    text->size += (size_t)size;
}

/* Writes the escape of a character up to U+FFFF: one letter if JSON has one for it, otherwise the
 * character's number. */
static void text_add_escaped(struct wire *text, uint32_t code) {
    static const char *const short_forms[128] = {
        ['"'] = "\\\"", ['\\'] = "\\\\", ['\b'] = "\\b", ['\f'] = "\\f",
        ['\n'] = "\\n", ['\r'] = "\\r",  ['\t'] = "\\t"};
    if (code < 128 && short_forms[code])
        wire_raw(text, short_forms[code], 2);
    else
        text_add(text, "\\u%04x", (unsigned)code);
}

/* Returns whether the character of `length` bytes at `at` is written unchanged: JSON needs no
 * escape for it, and a terminal would not take it as a command. */
static bool is_plain_in_json(const char *at, size_t length) {
    return *at != '"' && *at != '\\' && shown_plain(at, length) == length;
}

void text_add_json(struct wire *text, const char *string) {
    wire_raw(text, "\"", 1);
    for (const char *at = string; *at;) {
        size_t plain = 0;
        size_t length;
        while ((length = utf8_sequence(at + plain)) && at[plain] &&
               is_plain_in_json(at + plain, length))
            plain += length;
        wire_raw(text, at, plain);
        at += plain;
        if (!*at)
            break;
        if (length)
            text_add_escaped(text, utf8_code_point(at, length));
        else
            wire_raw(text, "\xef\xbf\xbd", 3); /* writes U+FFFD */
        at += length ? length : 1;
    }
    wire_raw(text, "\"", 1);
}

/* Adds `size` bytes of foreign text. A byte in `special` is written by the format `escape`, a byte
 * that cannot be shown by the format `unshown`. */
static void add_shown(struct wire *text, const char *string, size_t size, const char *special,
                      const char *escape, const char *unshown) {
    const char *const end = string + size;
    for (;;) {
        const size_t left = (size_t)(end - string);
        const size_t before = strcspn(string, special);
        const size_t plain = shown_plain(string, before < left ? before : left);
        wire_raw(text, string, plain);
        string += plain;
        if (string == end)
            return;
        const unsigned char byte = (unsigned char)*string++;
        text_add(text, strchr(special, byte) ? escape : unshown, byte);
    }
}

void text_add_shown(struct wire *text, const char *string) {
    add_shown(text, string, strlen(string), "", "", "\\x%02x");
}

/* Adds a label's value. In this format the end of a line has an escape, and a tab is written
 * unchanged. */
void text_add_prometheus(struct wire *text, const char *string) {
    wire_raw(text, "\"", 1);
    for (;;) {
        const size_t size = strcspn(string, "\n\t");
        add_shown(text, string, size, "\"\\", "\\%c", "\\\\x%02x");
        string += size;
        if (!*string)
            break;
        text_add(text, "%s", *string++ == '\n' ? "\\n" : "\t");
    }
    wire_raw(text, "\"", 1);
}

void text_add_html(struct wire *text, const char *string) {
    add_shown(text, string, strlen(string), "&<>\"'", "&#%d;", "\\x%02x");
}

void text_add_seconds(struct wire *text, uint64_t nano) {
    text_add(text, "%llu.%09llu", (unsigned long long)(nano / NANO_PER_SECOND),
             (unsigned long long)(nano % NANO_PER_SECOND));
}
