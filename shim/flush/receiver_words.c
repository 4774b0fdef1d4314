#include "receiver_words.h"

#include "keyvalues.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SHORTEST_SECRET = 6, MAX_WORD = 512 };

static const char blanks[] = " \t\r\n";

/* --- secrets --- */

struct search {
    const char *text;
    bool found;
};

/* Each word of it: "Bearer TOKEN" may come back as the token alone. */
static void look_for_value(void *arg, const char *name, const char *value) {
    struct search *const search = arg;
    (void)name;
    while (*value) {
        char word[MAX_WORD];
        const size_t size = strcspn(value, blanks);
        snprintf(word, sizeof word, "%.*s", (int)size, value);
        if (size >= SHORTEST_SECRET && strstr(search->text, word))
            search->found = true;
        value += size + strspn(value + size, blanks);
    }
}

static bool repeats_a_header(const struct config *config, const char *text) {
    struct search search = {text, false};
    if (!config->headers[0])
        return false;
    char *const scratch = malloc(strlen(config->headers) + 1);
    if (!scratch)
        return true;
    (void)keyvalues_parse(config->headers, scratch, look_for_value, &search);
    free(scratch);
    return search.found;
}

/* --- length --- */

static bool continues(char byte) {
    return ((unsigned char)byte & 0xc0) == 0x80;
}

/* Between two characters, where the text is UTF-8. */
static void keep_both_ends(const char *text, size_t size, char *said, size_t room) {
    static const char gap[] = " ... ";
    size_t head = (room - sizeof gap) / 2;
    size_t tail = size - head;
    while (head && continues(text[head]))
        head--;
    while (tail < size && continues(text[tail]))
        tail++;
    snprintf(said, room, "%.*s%s%.*s", (int)head, text, gap, (int)(size - tail), text + tail);
}

static void add_words(const struct config *config, const char *words, char *said, size_t room) {
    size_t size = strlen(words);
    while (size && strchr(blanks, words[size - 1]))
        size--;
    if (repeats_a_header(config, words))
        snprintf(said, room, "its words repeat a header and are not shown");
    else if (size < room)
        snprintf(said, room, "%.*s", (int)size, words);
    else
        keep_both_ends(words, size, said, room);
}

void receiver_words(const struct config *config, const char *what, const char *words, char *said,
                    size_t room) {
    words += strspn(words, blanks);
    const int begun = snprintf(said, room, "%s%s", what, *what && *words ? ": " : "");
    add_words(config, words, said + begun, room - (size_t)begun);
}
