#include "functional_names.h"

#include "text_numbers.h"

#include <ctype.h>
#include <string.h>

/* --- OCaml --- */

/* Returns the length without the stamp (`_` and digits) that makes a function's symbol unique; for
 * a function without a name (`fun`) the length with the stamp. 0: there is no stamp. */
static size_t without_stamp(const char *name) {
    size_t length = strlen(name);
    const size_t whole = length;
    while (length > 0 && isdigit((unsigned char)name[length - 1]))
        length--;
    if (length < 5 || length == whole || name[length - 1] != '_')
        return 0;
    return memcmp(name + length - 5, "_fun_", 5) == 0 || memcmp(name + length - 5, ".fun_", 5) == 0
               ? whole
               : length - 1;
}

bool ocaml_name(const char *name, struct name_text *readable) {
    static const char prefix[] = "caml";
    const size_t length = without_stamp(name);
    size_t at = sizeof prefix - 1;
    bool in_module = true; /* false once a later `__` may be part of the function's name */
    if (strncmp(name, prefix, at) != 0 || !isupper((unsigned char)name[at]) || length <= at)
        return false;
    readable->length = 0;
    readable->failed = false;
    while (at < length) {
        const bool may_escape = name[at] == '$' && length - at >= 3;
        const unsigned high = may_escape ? number_digit(name[at + 1]) : NO_DIGIT;
        const unsigned low = may_escape ? number_digit(name[at + 2]) : NO_DIGIT;
        if (high >= 2 && high < NO_DIGIT && low < NO_DIGIT) { /* control characters stay encoded */
            name_text_add_byte(readable, (char)(high << 4 | low));
            at += 3;
        } else if (in_module && at + 2 < length &&
                   (name[at] == '.' || (name[at] == '_' && name[at + 1] == '_'))) {
            at += name[at] == '.' ? 1 : 2;
            name_text_add_byte(readable, '.');
            in_module = isupper((unsigned char)name[at]);
        } else
            name_text_add_byte(readable, name[at++]);
    }
    return !readable->failed && memchr(readable->text, '.', readable->length);
}

/* --- Haskell --- */

struct escape {
    char letter;
    char character;
};

static const struct escape lower_escapes[] = {
    {'a', '&'}, {'b', '|'}, {'c', '^'}, {'d', '$'}, {'e', '='}, {'g', '>'},  {'h', '#'},
    {'i', '.'}, {'l', '<'}, {'m', '-'}, {'n', '!'}, {'p', '+'}, {'q', '\''}, {'r', '\\'},
    {'s', '/'}, {'t', '*'}, {'u', '_'}, {'v', '%'}, {'z', 'z'},
};
static const struct escape upper_escapes[] = {
    {'L', '('}, {'R', ')'}, {'M', '['}, {'N', ']'}, {'C', ':'}, {'Z', 'Z'},
};

static char escaped(const struct escape *escapes, size_t count, char letter) {
    for (size_t i = 0; i < count; i++)
        if (escapes[i].letter == letter)
            return escapes[i].character;
    return 0;
}

#define ESCAPED(escapes, letter) escaped(escapes, sizeof(escapes) / sizeof *(escapes), letter)

/* Adds a tuple: `Z`, a number and `T` or `H` (unboxed). Returns its length; 0: this is no tuple. */
static size_t add_tuple(const char *at, struct name_text *readable) {
    uint64_t size;
    const char *const end = number_read(at + 1, 10, &size);
    const bool unboxed = end && *end == 'H';
    if (!end || (*end != 'T' && !unboxed) || size > 64)
        return 0;
    name_text_add(readable, "(#", unboxed ? 2 : 1);
    for (uint64_t i = 1; i < size; i++)
        name_text_add_byte(readable, ',');
    name_text_add(readable, unboxed ? "#)" : ")", unboxed ? 2 : 1);
    return (size_t)(end + 1 - at);
}

/* Adds a character by its number: `z`, hexadecimal digits that begin with a decimal one, and `U`.
 * Returns the length of this form; 0: it is another form, or the character is not printable. */
static size_t add_numbered(const char *at, struct name_text *readable) {
    uint64_t number;
    if (!isdigit((unsigned char)at[1]))
        return 0;
    const char *const end = number_read(at + 1, 16, &number);
    if (!end || *end != 'U' || number < 0x20 || number == 0x7f)
        return 0;
    if (number > 0x7e) /* a character that is not ASCII only gets a placeholder */
        name_text_add_byte(readable, '?');
    else
        name_text_add_byte(readable, (char)number);
    return (size_t)(end + 1 - at);
}

/* Decodes [at, end). Returns true if the whole text is Z-encoded. */
static bool add_decoded(const char *at, const char *end, struct name_text *readable) {
    while (at < end && !readable->failed) {
        size_t length = 1;
        char character = *at;
        if (*at == 'z' || *at == 'Z') {
            length = 2;
            character = *at == 'z' ? ESCAPED(lower_escapes, at[1]) : ESCAPED(upper_escapes, at[1]);
            if (!character)
                length = *at == 'z' ? add_numbered(at, readable) : add_tuple(at, readable);
        } else if (!isalnum((unsigned char)*at))
            return false;
        if (length == 0 || length > (size_t)(end - at))
            return false;
        if (character)
            name_text_add_byte(readable, character);
        at += length;
    }
    return !readable->failed;
}

/* Returns the end of the name before its kind of code; NULL: it has no kind that GHC writes. */
static const char *before_kind(const char *name) {
    static const char *const kinds[] = {"_info",      "_closure", "_con_info", "_static_info",
                                        "_entry",     "_ret",     "_slow",     "_fast",
                                        "_con_entry", "_srt",     "_bytes",    "_direct"};
    const size_t length = strlen(name);
    const char *found = NULL;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        const size_t size = strlen(kinds[i]);
        if (length <= size || strcmp(name + length - size, kinds[i]) != 0)
            continue;
        if (!found || name + length - size < found)
            found = name + length - size;
    }
    return found;
}

/* Recognizes a Haskell name. Because a name of C may be similar, there must be a package and a
 * module, with an escape in one of the two (a version, or a module of two parts, has one); or the
 * module is Main. */
bool haskell_name(const char *name, struct name_text *readable) {
    const char *const end = before_kind(name);
    const bool is_main = strncmp(name, "Main_", 5) == 0;
    const char *module = name;
    readable->length = 0;
    readable->failed = false;
    if (!end)
        return false;
    if (!is_main) {
        module = memchr(name, '_', (size_t)(end - name));
        if (!module)
            return false;
        module++;
    }
    const char *const function = module < end ? memchr(module, '_', (size_t)(end - module)) : NULL;
    if (!function || !isupper((unsigned char)*module) || function + 1 >= end)
        return false;
    if (!is_main && !memchr(name, 'z', (size_t)(function - name)))
        return false;
    struct name_text package = {0};
    if (!is_main && !add_decoded(name, module - 1, &package))
        return false;
    if (!add_decoded(module, function, readable))
        return false;
    name_text_add_byte(readable, '.');
    return add_decoded(function + 1, end, readable);
}
