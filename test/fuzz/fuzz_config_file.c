/* Fuzzes a configuration file: every entry is a known name and a text of one line, is within the
 * text, and means the same when it is written as a line again; every refusal is one line.
 *
 * Input: a byte for how many entries can be kept, then the file.
 */
#include "config_names.h"
#include "fuzz.h"
#include "process/eligibility/config_file.h"

enum { MOST = 255, SAID_MOST = CONFIG_WRONG_MOST + 1 };

static void heed(void *arg, const char *message) {
    unsigned *const count = arg;
    ++*count;
    promise(is_one_line(message));
    promise(strncmp(message, "FILE", 4) == 0);
    promise(strlen(message) < 512);
}

static unsigned parse(char *text, size_t size, struct config_lines *lines) {
    unsigned said = 0;
    config_file_parse(text, size, "FILE", lines, heed, &said);
    promise(said <= SAID_MOST);
    promise(lines->count <= lines->most);
    return said;
}

static void check_entry(const char *entry, const char *text, size_t size) {
    const char *const equals = strchr(entry, '=');
    promise(entry >= text && entry + strlen(entry) <= text + size);
    promise(equals && config_names_have(entry, (size_t)(equals - entry)));
    promise(strlen(entry) <= CONFIG_LINE_MOST);
    for (const char *at = entry; *at; at++)
        promise((unsigned char)*at >= ' ' || *at == '\t');
}

/* Checks an entry in the quotes that it does not contain. */
static void check_again(const char *entry) {
    const char *const value = strchr(entry, '=') + 1;
    const char quote = strchr(value, '\'') ? '"' : '\'';
    const char *kept[1];
    struct config_lines lines = {.entries = kept, .most = 1};
    char *line;
    if (strchr(value, quote) || strlen(entry) + 2 > CONFIG_LINE_MOST)
        return;
    const int size =
        asprintf(&line, "%.*s%c%s%c", (int)(value - entry), entry, quote, value, quote);
    promise(size > 0);
    promise(parse(line, (size_t)size, &lines) == 0);
    promise(lines.count == 1 && strcmp(kept[0], entry) == 0);
    free(line);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const char *entries[MOST];
    struct input input = {data, size};
    struct config_lines lines = {.entries = entries, .most = take_byte(&input)};
    const size_t length = input.left;
    char *const text = malloc(length + 1);
    promise(text);
    if (length)
        memcpy(text, input.at, length);
    (void)parse(text, length, &lines);
    for (size_t i = 0; i < lines.count; i++) {
        check_entry(entries[i], text, length);
        check_again(entries[i]);
    }
    free(text);
    return 0;
}
