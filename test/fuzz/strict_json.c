#include "strict_json.h"

#include "fuzz.h"

struct look {
    const uint8_t *at;
    const uint8_t *end;
    unsigned depth;
    unsigned deepest;
    bool blanks;
};

static bool value(struct look *l);

static int next(const struct look *l) {
    return l->at < l->end ? *l->at : -1;
}

static bool is(struct look *l, int c) {
    if (next(l) != c)
        return false;
    l->at++;
    return true;
}

static void blanks(struct look *l) {
    while (next(l) == ' ' || next(l) == '\t' || next(l) == '\r' || next(l) == '\n') {
        l->blanks = true;
        l->at++;
    }
}

static bool word(struct look *l, const char *text) {
    for (; *text; text++)
        if (!is(l, *text))
            return false;
    return true;
}

static bool is_digit(int c) {
    return c >= '0' && c <= '9';
}

static bool is_hex(int c) {
    return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

static bool digits(struct look *l) {
    if (!is_digit(next(l)))
        return false;
    while (is_digit(next(l)))
        l->at++;
    return true;
}

static bool number(struct look *l) {
    (void)is(l, '-');
    if (!is(l, '0') && !digits(l))
        return false;
    if (is(l, '.') && !digits(l))
        return false;
    if (!is(l, 'e') && !is(l, 'E'))
        return true;
    if (!is(l, '+'))
        (void)is(l, '-');
    return digits(l);
}

static bool escape(struct look *l) {
    const int c = next(l);
    l->at++;
    if (c != 'u')
        return c > 0 && strchr("\"\\/bfnrt", c);
    for (int i = 0; i < 4; i++, l->at++)
        if (!is_hex(next(l)))
            return false;
    return true;
}

/* Checks one character beyond ASCII (Unicode 15, table 3-6: no surrogates, none too long, none
 * beyond). */
static bool wide(struct look *l) {
    const int lead = *l->at++;
    const int more = lead >= 0xf0 ? 3 : lead >= 0xe0 ? 2 : 1;
    static const uint32_t least[] = {0, 0x80, 0x800, 0x10000};
    uint32_t c = (uint32_t)lead & (0x3fu >> more);
    if (lead < 0xc0 || lead > 0xf7)
        return false;
    for (int i = 0; i < more; i++, l->at++) {
        if (next(l) < 0x80 || next(l) > 0xbf)
            return false;
        c = c << 6 | ((uint32_t)next(l) & 63);
    }
    return c >= least[more] && c <= 0x10ffff && (c < 0xd800 || c > 0xdfff);
}

static bool string(struct look *l) {
    if (!is(l, '"'))
        return false;
    for (;;) {
        const int c = next(l);
        if (c < 0x20)
            return false;
        if (c >= 0x80) {
            if (!wide(l))
                return false;
            continue;
        }
        l->at++;
        if (c == '"')
            return true;
        if (c == '\\' && !escape(l))
            return false;
    }
}

static bool member(struct look *l) {
    blanks(l);
    if (!string(l))
        return false;
    blanks(l);
    return is(l, ':') && value(l);
}

static bool items(struct look *l, char close, bool (*item)(struct look *)) {
    if (++l->depth > l->deepest)
        l->deepest = l->depth;
    l->at++;
    blanks(l);
    if (!is(l, close)) {
        do
            if (!item(l))
                return false;
        while (is(l, ','));
        if (!is(l, close))
            return false;
    }
    l->depth--;
    return true;
}

static bool bare_value(struct look *l) {
    switch (next(l)) {
    case '{':
        return items(l, '}', member);
    case '[':
        return items(l, ']', value);
    case '"':
        return string(l);
    case 't':
        return word(l, "true");
    case 'f':
        return word(l, "false");
    case 'n':
        return word(l, "null");
    default:
        return number(l);
    }
}

static bool value(struct look *l) {
    blanks(l);
    if (!bare_value(l))
        return false;
    blanks(l);
    return true;
}

struct strict_json strict_json_look(const uint8_t *text, size_t size) {
    struct look l = {.at = text, .end = text + size};
    const bool valid = value(&l) && l.at == l.end;
    return (struct strict_json){valid, l.deepest, !l.blanks};
}
