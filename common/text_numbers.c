#include "text_numbers.h"

static const char digits[] = "0123456789abcdef";

unsigned number_digit(char c) {
    const char small = (char)(c | 0x20);
    if (c >= '0' && c <= '9')
        return (unsigned)(c - '0');
    return small >= 'a' && small <= 'f' ? (unsigned)(small - 'a') + 10 : NO_DIGIT;
}

const char *number_read(const char *at, unsigned base, uint64_t *number) {
    const char *const first = at;
    uint64_t value = 0;
    *number = 0;
    for (unsigned digit; (digit = number_digit(*at)) < base; at++)
        if (__builtin_mul_overflow(value, base, &value) ||
            __builtin_add_overflow(value, digit, &value))
            return NULL;
    *number = value;
    return at > first ? at : NULL;
}

char *number_write(char *to, unsigned base, uint64_t number) {
    char reversed[NUMBER_BYTES];
    int count = 0;
    do
        reversed[count++] = digits[number % base];
    while (number /= base);
    while (count)
        *to++ = reversed[--count];
    *to = 0;
    return to;
}

char *number_write_bytes(char *to, const void *bytes, size_t size) {
    for (const uint8_t *at = bytes; size--; at++) {
        *to++ = digits[*at >> 4];
        *to++ = digits[*at & 15];
    }
    *to = 0;
    return to;
}
