#include "d_name.h"

#include <ctype.h>
#include <string.h>

enum {
    MAX_DEPTH = 64, /* largest nesting of types */
    /* largest number of types and symbols that are read, because some are tried twice */
    MAX_STEPS = 4096,
};

struct d_reader {
    const char *start;
    const char *at; /* the next character; the name ends with a NUL */
    unsigned depth;
    unsigned steps;
    bool failed;
    struct name_text *to; /* NULL: the text is read but not written */
};

static void skip_type(struct d_reader *r);
static void read_qualified(struct d_reader *r);

static bool is_next(const struct d_reader *r, const char *letters) {
    return *r->at && strchr(letters, *r->at);
}

static size_t read_number(struct d_reader *r) {
    size_t number = 0;
    r->failed |= !isdigit((unsigned char)*r->at);
    for (; isdigit((unsigned char)*r->at); r->at++)
        if (number < MAX_NAME_TEXT)
            number = number * 10 + (size_t)(*r->at - '0');
    return number;
}

/* Reads `Q` and the distance back in base 26, whose last digit is a small letter. Returns the place
 * that it leads to; NULL, and the read has failed: there is no such place. */
static const char *read_back_reference(struct d_reader *r) {
    const char *const from = r->at++;
    size_t distance = 0;
    while (isupper((unsigned char)*r->at) && distance < MAX_NAME_TEXT)
        distance = distance * 26 + (size_t)(*r->at++ - 'A');
    if (!islower((unsigned char)*r->at)) {
        r->failed = true;
        return NULL;
    }
    distance = distance * 26 + (size_t)(*r->at++ - 'a');
    if (distance == 0 || distance > (size_t)(from - r->start)) {
        r->failed = true;
        return NULL;
    }
    return from - distance;
}

static void add_identifier(struct d_reader *r, const char *text, size_t length) {
    if (!r->to)
        return;
    if (r->to->length)
        name_text_add_byte(r->to, '.');
    if (length == 6 && memcmp(text, "__ctor", 6) == 0)
        name_text_add(r->to, "this", 4);
    else if (length == 6 && memcmp(text, "__dtor", 6) == 0)
        name_text_add(r->to, "~this", 5);
    else
        name_text_add(r->to, text, length);
}

/* Reads a number, and as many characters as it says. */
static void read_identifier(struct d_reader *r) {
    const size_t length = read_number(r);
    if (r->failed || strnlen(r->at, length) < length) {
        r->failed = true;
        return;
    }
    for (size_t i = 0; i < length; i++)
        r->failed |= !isalnum((unsigned char)r->at[i]) && r->at[i] != '_' && !(r->at[i] & 0x80);
    if (!r->failed && length)
        add_identifier(r, r->at, length);
    r->at += length;
}

static void read_referred_identifier(struct d_reader *r) {
    const char *const place = read_back_reference(r);
    if (!place)
        return;
    const char *const behind = r->at;
    r->at = place;
    read_identifier(r);
    r->at = behind;
}

/* --- arguments of templates --- */

static void skip_value(struct d_reader *r, bool pairs) {
    if (r->failed || ++r->steps > MAX_STEPS || ++r->depth > MAX_DEPTH) {
        r->failed = true;
        return;
    }
    const char kind = *r->at;
    if (isdigit((unsigned char)kind))
        (void)read_number(r);
    else if (kind == 'n')
        r->at++;
    else if (kind == 'i' || kind == 'N') {
        r->at++;
        (void)read_number(r);
    } else if (kind == 'e' || kind == 'c')
        for (r->at++; is_next(r, "0123456789ABCDEFNPIXc");)
            r->at++;
    else if (kind == 'a' || kind == 'w' || kind == 'd') {
        r->at++;
        const size_t digits = 2 * read_number(r);
        r->failed |= *r->at != '_' || strnlen(r->at, digits + 1) < digits + 1;
        r->at += r->failed ? 0 : digits + 1;
    } else if (kind == 'A' || kind == 'S') {
        r->at++;
        for (size_t i = read_number(r) * (pairs ? 2 : 1); i > 0 && !r->failed; i--)
            skip_value(r, false);
    } else
        r->failed = true;
    r->depth--;
}

static void skip_argument(struct d_reader *r) {
    if (*r->at == 'H') /* an H marks a specialized argument */
        r->at++;
    const char kind = *r->at;
    r->at += kind != 0;
    switch (kind) {
    case 'T':
        skip_type(r);
        break;
    case 'V': {
        const bool pairs = *r->at == 'H';
        skip_type(r);
        skip_value(r, pairs);
        break;
    }
    case 'S':
        read_qualified(r);
        break;
    case 'X': {
        const size_t length = read_number(r);
        r->failed |= strnlen(r->at, length) < length;
        r->at += r->failed ? 0 : length;
        break;
    }
    default:
        r->failed = true;
    }
}

static bool is_template(const struct d_reader *r) {
    return r->at[0] == '_' && r->at[1] == '_' && (r->at[2] == 'T' || r->at[2] == 'U');
}

static void read_template(struct d_reader *r) {
    struct name_text *const to = r->to;
    r->at += 3;
    if (*r->at == 'Q')
        read_referred_identifier(r);
    else
        read_identifier(r);
    r->to = NULL;
    while (!r->failed && *r->at && *r->at != 'Z')
        skip_argument(r);
    r->to = to;
    r->failed |= *r->at != 'Z';
    r->at += !r->failed;
    if (to)
        name_text_add(to, "!(...)", 6);
}

/* --- names --- */

static bool is_symbol_next(const struct d_reader *r) {
    return isdigit((unsigned char)*r->at) || *r->at == 'Q' || is_template(r);
}

static void d_name_read_symbol(struct d_reader *r) {
    const char *const start = r->at;
    if (is_template(r)) {
        read_template(r);
    } else if (*r->at == 'Q')
        read_referred_identifier(r);
    else {
        /* older compilers wrote the length of a template's instance before the instance */
        const size_t length = read_number(r);
        if (length && is_template(r) && r->at[3] && isdigit((unsigned char)r->at[3]))
            read_template(r);
        else {
            r->at = start;
            read_identifier(r);
        }
    }
}

static const char conventions[] = "FUWVRY";

static void skip_modifiers(struct d_reader *r) {
    while (is_next(r, "xyO") || (r->at[0] == 'N' && r->at[1] == 'g'))
        r->at += *r->at == 'N' ? 2 : 1;
}

/* Skips a function's type, except its return type. */
static void skip_function(struct d_reader *r) {
    r->failed |= !is_next(r, conventions);
    r->at += !r->failed;
    while (r->at[0] == 'N' && r->at[1] >= 'a' && r->at[1] <= 'm' && !strchr("ghk", r->at[1]))
        r->at += 2;
    while (!r->failed && !is_next(r, "XYZ")) {
        while (is_next(r, "MIJKL") || (r->at[0] == 'N' && r->at[1] == 'k'))
            r->at += *r->at == 'N' ? 2 : 1;
        skip_type(r);
    }
    r->at += !r->failed;
}

/* Skips the type of an enclosing function, which may follow a symbol before the next one. Returns
 * false, without reading, if there is none. */
static bool skip_enclosing_type(struct d_reader *r) {
    struct d_reader try = *r;
    try.to = NULL;
    if (*try.at == 'M') {
        try.at++;
        skip_modifiers(&try);
    }
    skip_function(&try);
    r->steps = try.steps;
    if (try.failed || !is_symbol_next(&try))
        return false;
    r->at = try.at;
    return true;
}

static void read_qualified(struct d_reader *r) {
    if (++r->depth > MAX_DEPTH)
        r->failed = true;
    do {
        if (++r->steps > MAX_STEPS)
            r->failed = true;
        if (!r->failed)
            d_name_read_symbol(r);
    } while (!r->failed && (is_symbol_next(r) || skip_enclosing_type(r)));
    r->depth--;
}

/* --- types --- */

static void skip_type(struct d_reader *r) {
    if (r->failed || ++r->steps > MAX_STEPS || ++r->depth > MAX_DEPTH) {
        r->failed = true;
        return;
    }
    skip_modifiers(r);
    const char kind = *r->at;
    if (kind == 'Q')
        (void)read_back_reference(r);
    else if (strchr(conventions, kind) && kind) {
        skip_function(r);
        skip_type(r);
    } else if (kind == 'D') {
        r->at++;
        skip_modifiers(r);
        skip_type(r);
    } else if (kind)
        r->at++;
    if (kind == 'N') { /* a vector, or the type of a function that never returns */
        const bool vector = *r->at == 'h';
        r->failed |= !vector && *r->at != 'n';
        r->at += !r->failed;
        if (vector)
            skip_type(r);
    } else if (kind == 'A' || kind == 'P')
        skip_type(r);
    else if (kind == 'G') {
        (void)read_number(r);
        skip_type(r);
    } else if (kind == 'H') {
        skip_type(r);
        skip_type(r);
    } else if (kind && strchr("CSET", kind))
        read_qualified(r);
    else if (kind == 'B')
        for (size_t i = read_number(r); i > 0 && !r->failed; i--)
            skip_type(r);
    else if (kind == 'z')
        r->at += *r->at != 0;
    else if (!kind || (!islower((unsigned char)kind) && !strchr("QDFUWVRYN", kind)))
        r->failed = true;
    r->depth--;
}

bool d_name(const char *name, struct name_text *readable) {
    struct d_reader r = {.start = name, .at = name + 2, .to = readable};
    readable->length = 0;
    readable->failed = false;
    if (strcmp(name, "_Dmain") == 0) {
        name_text_add(readable, "D main", 6);
        return true;
    }
    if (name[0] != '_' || name[1] != 'D' || !isdigit((unsigned char)name[2]))
        return false;
    read_qualified(&r);
    return !r.failed && !readable->failed && readable->length;
}
