#include "condition.h"

#include "config_values.h"

#include <string.h>

enum { LONGEST = 32 };
static const uint64_t most_percent = 1000000; /* the CPU time of 10,000 processors */

/* Describes a unit. A list is searched from its beginning for a unit in which a text ends: so "ms"
 * comes before "s". */
struct unit {
    const char *name; /* NULL: the end of the list */
    uint32_t factor;
};
static const struct unit to_kib[] = {{"KiB", 1}, {"MiB", 1 << 10}, {"GiB", 1 << 20}, {NULL, 0}};
static const struct unit to_milli[] = {{"ms", 1}, {"min", 60 * 1000}, {"s", 1000}, {NULL, 0}};

static uint32_t lower_bound(uint32_t bound, uint32_t other) {
    return bound == 0 || other < bound ? other : bound;
}

/* Cuts `unit` off the end of `text`. Returns false if the text does not end in the unit. */
static bool cut_unit(char *text, const char *unit) {
    const size_t size = strlen(text);
    const size_t unit_size = strlen(unit);
    if (size < unit_size || !text_equals_ignoring_case(text + size - unit_size, unit))
        return false;
    text[size - unit_size] = 0;
    return true;
}

static bool parse_percent(char *text, uint32_t *bound) {
    uint64_t number;
    if (!cut_unit(text, "%") || !parse_number(text, 1, most_percent, &number))
        return false;
    *bound = lower_bound(*bound, (uint32_t)number);
    return true;
}

static bool parse_amount(char *text, const struct unit *unit, uint32_t *bound) {
    uint64_t number;
    while (unit->name && !cut_unit(text, unit->name))
        unit++;
    if (!unit->name || !parse_number(text, 1, UINT32_MAX / unit->factor, &number))
        return false;
    *bound = lower_bound(*bound, (uint32_t)number * unit->factor);
    return true;
}

/* Parses one bound of the list, of `size` bytes without the blanks around it. */
static bool parse_bound(const char *text, size_t size, struct condition *condition) {
    char bound[LONGEST];
    if (size >= sizeof bound)
        return false;
    memcpy(bound, text, size);
    bound[size] = 0;
    if (text_is_word(bound, 4, "cpu>"))
        return parse_percent(bound + 4, &condition->cpu_percent);
    if (text_is_word(bound, 4, "rss>"))
        return parse_amount(bound + 4, to_kib, &condition->rss_kib);
    return text_is_word(bound, 5, "span>") &&
           parse_amount(bound + 5, to_milli, &condition->span_milli);
}

static bool parse_list(const char *text, struct condition *condition) {
    while (text) {
        const char *at;
        const size_t size = list_next(&text, &at);
        if (!parse_bound(at, size, condition))
            return false;
    }
    return true;
}

bool condition_parse(const char *text, struct condition *condition) {
    struct condition parsed = {0, 0, 0};
    if (!text_equals_ignoring_case(text, "none") && !parse_list(text, &parsed))
        return false;
    *condition = parsed;
    return true;
}
