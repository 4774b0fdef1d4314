#include "written_text.h"

#include "clock.h"
#include "utf8.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void text_add_bytes(struct wire *text, const char *bytes, size_t size) {
    if (!wire_reserve(text, size))
        return;
    memcpy(text->bytes + text->size, bytes, size);
    text->size += size;
}

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

void text_add_json(struct wire *text, const char *string) {
    text_add_bytes(text, "\"", 1);
    while (*string) {
        const size_t size = utf8_sequence(string);
        const unsigned char first = (unsigned char)*string;
        if (size == 0)
            text_add_bytes(text, "?", 1);
        else if (first < 0x20 || first == 0x7f)
            text_add(text, "\\u%04x", first);
        else if (first == '"' || first == '\\')
            text_add(text, "\\%c", first);
        else
            text_add_bytes(text, string, size);
        string += size ? size : 1;
    }
    text_add_bytes(text, "\"", 1);
}

void text_add_prometheus(struct wire *text, const char *string) {
    text_add_bytes(text, "\"", 1);
    while (*string) {
        const size_t size = utf8_sequence(string);
        if (size == 0)
            text_add_bytes(text, "?", 1);
        else if (*string == '\n')
            text_add_bytes(text, "\\n", 2);
        else if (*string == '"' || *string == '\\')
            text_add(text, "\\%c", *string);
        else
            text_add_bytes(text, string, size);
        string += size ? size : 1;
    }
    text_add_bytes(text, "\"", 1);
}

void text_add_html(struct wire *text, const char *string) {
    for (; *string; string++) {
        const char *const special = strchr("&<>\"'", *string);
        if (special)
            text_add(text, "&#%d;", *special);
        else
            text_add_bytes(text, string, 1);
    }
}

void text_add_seconds(struct wire *text, uint64_t nano) {
    text_add(text, "%llu.%09llu", (unsigned long long)(nano / NANO_PER_SECOND),
             (unsigned long long)(nano % NANO_PER_SECOND));
}
