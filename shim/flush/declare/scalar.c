#include "scalar.h"

#include "text_numbers.h"

#include <locale.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

static bool scalar_is_one_of(const char *text, const char *const *words, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (strcmp(text, words[i]) == 0)
            return true;
    return false;
}

static const char *skip_digits(const char *at) {
    while (*at >= '0' && *at <= '9')
        at++;
    return at;
}

static const char *skip_sign(const char *at) {
    return at + (*at == '-' || *at == '+');
}

/* --- integers --- */

/* Returns 10, 8 (0o17) or 16 (0x1f); 0: not an integer. */
static int integer_base(const char *text) {
    const char *const digits = skip_sign(text);
    if (digits[0] == '0' && digits[1] == 'o' && digits[2])
        return digits[2 + strspn(digits + 2, "01234567")] ? 0 : 8;
    if (digits[0] == '0' && digits[1] == 'x' && digits[2])
        return digits[2 + strspn(digits + 2, "0123456789abcdefABCDEF")] ? 0 : 16;
    return *digits && !*skip_digits(digits) ? 10 : 0;
}

/* Reads the integer. Returns false if it has more than 64 bits. */
static bool read_integer(const char *text, int base, int64_t *integer) {
    const bool negative = text[0] == '-';
    const char *const digits = skip_sign(text) + (base == 10 ? 0 : 2);
    const uint64_t most = (uint64_t)INT64_MAX + negative;
    uint64_t value;
    if (!number_read(digits, (unsigned)base, &value) || value > most)
        return false;
    *integer = negative ? (int64_t)(0 - value) : (int64_t)value;
    return true;
}

/* --- other numbers --- */

/* Returns true for [-+]? ( \. [0-9]+ | [0-9]+ ( \. [0-9]* )? ) ( [eE] [-+]? [0-9]+ )? */
static bool is_real(const char *text) {
    const char *at = skip_sign(text);
    const char *const whole = at;
    at = skip_digits(at);
    const bool has_whole = at > whole;
    if (*at == '.') {
        const char *const behind = at + 1;
        at = skip_digits(behind);
        if (!has_whole && at == behind)
            return false;
    } else if (!has_whole)
        return false;
    if (*at != 'e' && *at != 'E')
        return *at == 0;
    const char *const exponent = skip_sign(at + 1);
    return *exponent && !*skip_digits(exponent);
}

static bool is_special_real(const char *text, double *real) {
    static const char *const infinities[] = {".inf", ".Inf", ".INF"};
    static const char *const nans[] = {".nan", ".NaN", ".NAN"};
    if (scalar_is_one_of(text, nans, 3)) {
        *real = __builtin_nan("");
        return true;
    }
    *real = text[0] == '-' ? -__builtin_inf() : __builtin_inf();
    return scalar_is_one_of(skip_sign(text), infinities, 3);
}

/* Always reads a decimal point, independent of the program's locale. */
static double scalar_read_real(const char *text) {
    const locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (!plain)
        return 0;
    const double real = strtod_l(text, NULL, plain);
    freelocale(plain);
    return real;
}

static struct scalar scalar_parse_number(const char *text) {
    struct scalar scalar = {.type = SCALAR_TEXT};
    const int base = integer_base(text);
    if (base && read_integer(text, base, &scalar.integer)) {
        scalar.type = SCALAR_INT;
        scalar.real = (double)scalar.integer;
    } else if (is_special_real(text, &scalar.real)) {
        scalar.type = SCALAR_DOUBLE;
    } else if (is_real(text)) {
        scalar.type = SCALAR_DOUBLE;
        scalar.real = scalar_read_real(text);
    }
    return scalar;
}

struct scalar scalar_parse(const char *text) {
    static const char *const nulls[] = {"", "~", "null", "Null", "NULL"};
    static const char *const truths[] = {"true", "True", "TRUE"};
    static const char *const lies[] = {"false", "False", "FALSE"};
    if (scalar_is_one_of(text, nulls, 5))
        return (struct scalar){.type = SCALAR_NULL};
    if (scalar_is_one_of(text, truths, 3))
        return (struct scalar){.type = SCALAR_BOOL, .truth = true};
    if (scalar_is_one_of(text, lies, 3))
        return (struct scalar){.type = SCALAR_BOOL};
    return scalar_parse_number(text);
}
