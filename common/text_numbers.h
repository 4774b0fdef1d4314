/* Reads and writes numbers of text that ends in NUL, without libc: strtoull() and snprintf() depend
 * on the locale, snprintf() may allocate, and each symbol that the loader must look up costs time
 * in every program. Context: any. Async-signal-safe: yes. */
#ifndef OTELPROF_TEXT_NUMBERS_H
#define OTELPROF_TEXT_NUMBERS_H

#include <stddef.h>
#include <stdint.h>

enum {
    NO_DIGIT = 16,     /* value for a character that is no digit: not less than any base */
    NUMBER_BYTES = 21, /* bytes of UINT64_MAX in decimal, and a NUL */
};

/* Returns the value of a decimal or hexadecimal digit of either case; NO_DIGIT: `c` is no digit. */
unsigned number_digit(char c);

/* Reads digits of `base`, 8, 10 or 16, without sign and prefix. Returns the place behind the
 * digits. If there is no digit, or the number has more than 64 bits, returns NULL and stores 0. */
const char *number_read(const char *at, unsigned base, uint64_t *number);

/* Writes the digits and a NUL, at most NUMBER_BYTES. Returns the place of the NUL. */
char *number_write(char *to, unsigned base, uint64_t number);

/* Writes two lower-case digits of each byte, and a NUL. Returns the place of the NUL. */
char *number_write_bytes(char *to, const void *bytes, size_t size);

#endif
