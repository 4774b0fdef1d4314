#include "receiver_words.h"

#include "keyvalues.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { SHORTEST_SECRET = 6 };

static const char blanks[] = " \t\r\n";

/* --- secrets --- */

struct search {
    const char *text;
    bool found;
};

/* Returns true if the text contains the secret, or ends with the secret's beginning, because the
 * text may have been cut there. */
static bool contains_secret(const char *text, const char *secret, size_t size) {
    const size_t length = strlen(text);
    if (memmem(text, length, secret, size))
        return true;
    for (size_t part = SHORTEST_SECRET; part < size && part <= length; part++)
        if (memcmp(text + length - part, secret, part) == 0)
            return true;
    return false;
}

/* Returns the size of the scheme ("Bearer", "Basic") before the credentials in these headers (RFC
 * 9110, 11.4), with the blanks after it; 0: none. The scheme is no secret, and receivers name it in
 * their errors. */
static size_t scheme_size(const char *name, const char *value) {
    const size_t size = strcspn(value, blanks);
    const size_t all = size + strspn(value + size, blanks);
    const bool has_scheme =
        strcasecmp(name, "authorization") == 0 || strcasecmp(name, "proxy-authorization") == 0;
    return has_scheme && value[all] ? all : 0;
}

/* Searches for each word of the value, except for short words and the scheme: "Bearer TOKEN" may
 * come back as the token alone. */
static void search_value(void *arg, const char *name, const char *value) {
    struct search *const search = arg;
    value += scheme_size(name, value);
    while (*value) {
        const size_t size = strcspn(value, blanks);
        if (size >= SHORTEST_SECRET && contains_secret(search->text, value, size))
            search->found = true;
        value += size + strspn(value + size, blanks);
    }
}

/* Returns true if the text repeats a word of a configured header's value. `scratch` has room for
 * strlen(config->headers) + 1 bytes. */
static bool repeats_header_in(const struct config *config, const char *text, char *scratch) {
    struct search search = {text, false};
    (void)keyvalues_parse(config->headers, scratch, search_value, &search);
    return search.found;
}

/* Copies the text to `plain` without its backslashes, because JSON may write "/" as "\/". */
static void drop_backslashes(const char *text, char *plain) {
    for (; *text; text++)
        if (*text != '\\')
            *plain++ = *text;
    *plain = 0;
}

static bool repeats_a_header(const struct config *config, const char *text) {
    if (!config->headers[0])
        return false;
    char *const scratch = malloc(strlen(config->headers) + 1);
    char *const plain = malloc(strlen(text) + 1);
    bool found = true;
    if (scratch && plain) {
        drop_backslashes(text, plain);
        found =
            repeats_header_in(config, text, scratch) || repeats_header_in(config, plain, scratch);
    }
    free(scratch);
    free(plain);
    return found;
}

/* --- length --- */

static bool continues(char byte) {
    return ((unsigned char)byte & 0xc0) == 0x80;
}

/* Writes the beginning and the end of a text that does not fit, and " ... " between them. Cuts
 * between characters if the text is UTF-8. */
static void keep_both_ends(const char *text, size_t size, char *shown, size_t room) {
    static const char gap[] = " ... ";
    size_t head = (room - sizeof gap) / 2;
    size_t tail = size - head;
    while (head && continues(text[head]))
        head--;
    while (tail < size && continues(text[tail]))
        tail++;
    snprintf(shown, room, "%.*s%s%.*s", (int)head, text, gap, (int)(size - tail), text + tail);
}

static void add_words(const struct config *config, const char *words, char *shown, size_t room) {
    size_t size = strlen(words);
    /* hides the message, because a server may repeat its secrets verbatim, decoded, in base64 or in
     * another form that is not searched for */
    const bool has_secret_url = config->endpoint[strcspn(config->endpoint, "@?")] != 0;
    while (size && strchr(blanks, words[size - 1]))
        size--;
    if (has_secret_url && size)
        snprintf(shown, room, "its words are not shown: the URL has credentials or a query");
    else if (repeats_a_header(config, words))
        snprintf(shown, room, "its words repeat a header and are not shown");
    else if (size < room)
        snprintf(shown, room, "%.*s", (int)size, words);
    else
        keep_both_ends(words, size, shown, room);
}

void receiver_words(const struct config *config, const char *what, const char *words, char *shown,
                    size_t room) {
    words += strspn(words, blanks);
    const int begun = snprintf(shown, room, "%s%s", what, *what && *words ? ": " : "");
    add_words(config, words, shown + begun, room - (size_t)begun);
}
