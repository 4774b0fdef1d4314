#include "config_values.h"

#include "text_numbers.h"

#include <signal.h>
#include <string.h>

static char lower(char c) {
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

bool text_is_word(const char *text, size_t size, const char *word) {
    for (size_t i = 0; i < size; i++)
        if (!word[i] || lower(text[i]) != lower(word[i]))
            return false;
    return word[size] == 0;
}

bool text_equals_ignoring_case(const char *text, const char *word) {
    return text_is_word(text, strlen(text), word);
}

bool parse_number(const char *text, uint64_t low, uint64_t high, uint64_t *value) {
    const char *const end = number_read(text, 10, value);
    return end && !*end && *value >= low && *value <= high;
}

/* Parses the digits behind the point, one to four, as ten thousandths. */
static bool parse_digits(const char *text, uint64_t *number) {
    char padded[] = "0000";
    const size_t length = strlen(text);
    if (length == 0 || length >= sizeof padded)
        return false;
    memcpy(padded, text, length);
    return parse_number(padded, 0, 9999, number);
}

bool parse_overhead(const char *text, uint64_t *millionths) {
    enum { HUNDRED = 100 * 10000 };
    uint64_t whole = 0;
    uint64_t rest = 0;
    char before[] = "100";
    const size_t length = strcspn(text, ".");
    if (text_equals_ignoring_case(text, "none")) {
        *millionths = UINT64_MAX;
        return true;
    }
    if (length >= sizeof before || (text[length] && !parse_digits(text + length + 1, &rest)))
        return false;
    memcpy(before, text, length);
    before[length] = 0;
    if (!parse_number(before, 0, 100, &whole) || whole * 10000 + rest > HUNDRED)
        return false;
    const uint64_t parsed = whole * 10000 + rest;
    *millionths = parsed ? parsed : UINT64_MAX;
    return true;
}

bool parse_word(const char *text, const char *const *words, size_t count, unsigned *index) {
    for (size_t i = 0; i < count; i++) {
        if (!text_equals_ignoring_case(text, words[i]))
            continue;
        *index = (unsigned)i;
        return true;
    }
    return false;
}

static bool add_word(const char *text, size_t size, const char *const *words, size_t count,
                     unsigned *bits) {
    for (size_t i = 0; i < count; i++) {
        if (!text_is_word(text, size, words[i]))
            continue;
        *bits |= 1u << i;
        return true;
    }
    return false;
}

size_t list_next(const char **rest, const char **at) {
    const char *const text = *rest;
    const size_t raw = strcspn(text, ",");
    size_t start = 0;
    size_t end = raw;
    while (start < end && text[start] == ' ')
        start++;
    while (end > start && text[end - 1] == ' ')
        end--;
    *at = text + start;
    *rest = text[raw] ? text + raw + 1 : NULL;
    return end - start;
}

bool parse_set(const char *text, const char *const *words, size_t count, unsigned *bits) {
    *bits = 0;
    while (text) {
        const char *at;
        const size_t size = list_next(&text, &at);
        if (!add_word(at, size, words, count, bits))
            return false;
    }
    return true;
}

bool parse_url(const char *text, const char **path) {
    static const char *const schemes[] = {"http://", "https://"};
    for (size_t i = 0; i < 2; i++) {
        const size_t size = strlen(schemes[i]);
        if (strnlen(text, size) < size || !text_is_word(text, size, schemes[i]))
            continue;
        const char *const host = text + size;
        *path = host + strcspn(host, "/?#");
        return *path > host && !strpbrk(text, " \t\r\n");
    }
    return false;
}

static bool is_usable(uint64_t number) {
    static const uint8_t never[] = {SIGILL,  SIGTRAP, SIGABRT, SIGBUS, SIGFPE,
                                    SIGKILL, SIGSEGV, SIGSTOP, SIGSYS, SIGCHLD};
    for (size_t i = 0; i < sizeof never; i++)
        if (number == never[i])
            return false;
    /* refuses numbers between the standard and the real-time signals, which are libc's own */
    return number >= 1 && (number < SIGSYS || number >= (uint64_t)SIGRTMIN) &&
           number <= (uint64_t)SIGRTMAX;
}

/* Parses "SIGRTMIN" or "SIGRTMIN+3". `base`: the name before the sign; `origin`: its number; `sign`
 * 1 or -1: the sign that may follow. */
static bool parse_real_time(const char *text, const char *base, int origin, int sign,
                            uint64_t *number) {
    const size_t size = strlen(base);
    uint64_t offset = 0;
    char head[16];
    if (strlen(text) < size || size >= sizeof head)
        return false;
    memcpy(head, text, size);
    head[size] = 0;
    if (!text_equals_ignoring_case(head, base))
        return false;
    if (text[size] && (text[size] != (sign > 0 ? '+' : '-') ||
                       !parse_number(text + size + 1, 0, (uint64_t)(SIGRTMAX - SIGRTMIN), &offset)))
        return false;
    *number = sign > 0 ? (uint64_t)origin + offset : (uint64_t)origin - offset;
    return true;
}

bool parse_signal(const char *text, uint64_t *number) {
    uint64_t found = 0;
    if (text_equals_ignoring_case(text, "SIGPROF"))
        found = SIGPROF;
    else if (!parse_real_time(text, "SIGRTMIN", SIGRTMIN, 1, &found) &&
             !parse_real_time(text, "SIGRTMAX", SIGRTMAX, -1, &found) &&
             !parse_number(text, 1, (uint64_t)SIGRTMAX, &found))
        return false;
    if (!is_usable(found))
        return false;
    *number = found;
    return true;
}
