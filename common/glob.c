#include "glob.h"

#include "config_values.h"

#include <string.h>

/* --- one byte --- */

/* Takes one byte of the pattern, or the byte behind a backslash. A backslash that ends the pattern
 * matches nothing, as in fnmatch(). */
static bool take_byte(const char **at, const char *end, unsigned char *byte) {
    if (**at == '\\' && ++*at == end)
        return false;
    *byte = (unsigned char)*(*at)++;
    return true;
}

/* Matches the set whose `[` is at `at`. Returns the position behind the set's `]`; NULL if the set
 * is not closed. */
static const char *match_set(const char *at, const char *end, unsigned char c, bool *matched) {
    const char *p = at + 1;
    const bool inverted = p < end && (*p == '!' || *p == '^');
    bool found = false;
    p += inverted;
    for (const char *const first = p; p < end && (*p != ']' || p == first);) {
        unsigned char low;
        if (!take_byte(&p, end, &low))
            return NULL;
        unsigned char high = low;
        if (end - p >= 2 && p[0] == '-' && p[1] != ']') {
            p++;
            if (!take_byte(&p, end, &high))
                return NULL;
        }
        found |= low <= c && c <= high;
    }
    *matched = found != inverted;
    return p < end ? p + 1 : NULL;
}

/* Matches the pattern's element at `*at`, which is no `*`, against one byte. */
static bool match_one(const char **at, const char *end, unsigned char c) {
    unsigned char byte;
    bool matched;
    if (**at == '?') {
        (*at)++;
        return true;
    }
    const char *const behind = **at == '[' ? match_set(*at, end, c, &matched) : NULL;
    if (behind) {
        *at = behind;
        return matched;
    }
    return take_byte(at, end, &byte) && byte == c;
}

/* --- a text --- */

/* Matches the whole text. When a match fails, only the last `*` must take more text: the matches of
 * earlier elements can stay.
 */
bool glob_matches(struct glob glob, const char *text) {
    const char *at = glob.text;
    const char *const end = at + glob.size;
    const char *behind_star = NULL;
    const char *taken = text; /* the last star has taken the text up to here */
    while (*text) {
        if (at < end && *at == '*') {
            behind_star = ++at;
            taken = text;
            continue;
        }
        if (at < end && match_one(&at, end, (unsigned char)*text)) {
            text++;
            continue;
        }
        if (!behind_star)
            return false;
        at = behind_star;
        text = ++taken;
    }
    while (at < end && *at == '*')
        at++;
    return at == end;
}

/* --- lists --- */

bool glob_next(const char **list, struct glob *element) {
    while (**list) {
        const char *start = *list + strspn(*list, " \t,");
        size_t size = strcspn(start, ",");
        *list = start + size;
        while (size > 0 && (start[size - 1] == ' ' || start[size - 1] == '\t'))
            size--;
        *element = (struct glob){start, size};
        if (size > 0)
            return true;
    }
    return false;
}

bool glob_list_matches(const char *list, const char *text) {
    struct glob glob;
    while (glob_next(&list, &glob))
        if (glob_matches(glob, text))
            return true;
    return false;
}

bool glob_is_word(struct glob glob, const char *word) {
    return text_is_word(glob.text, glob.size, word);
}

const char *glob_base_name(const char *path) {
    const char *const slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}
