/* Holds the common parts of the fuzzers: the input, and promises that must hold for any input.
 *
 * A fuzzer is one fuzz_NAME.c with LLVMFuzzerTestOneInput(). It runs the tested code under the
 * address and undefined-behaviour sanitizers, and checks the properties of the result. It first
 * copies its input to a block of exactly the input's size, so that a read one byte too far is
 * noticed. */
#ifndef OTELPROF_FUZZ_H
#define OTELPROF_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define promise(condition)                                                                         \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: broken promise: %s\n", __FILE__, __LINE__, #condition);        \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

/* Holds the input, which is taken piece by piece from its front. */
struct input {
    const uint8_t *at;
    size_t left;
};

/* Takes a byte; 0 when nothing is left. */
static inline uint8_t take_byte(struct input *input) {
    if (input->left == 0)
        return 0;
    input->left--;
    return *input->at++;
}

/* Takes the text before the next `separator` or the end, NUL-terminated, malloc'ed. */
static inline char *take_text(struct input *input, uint8_t separator) {
    const uint8_t *const found =
        input->left ? (const uint8_t *)memchr(input->at, separator, input->left) : NULL;
    const size_t size = found ? (size_t)(found - input->at) : input->left;
    char *const text = malloc(size + 1);
    promise(text);
    if (size)
        memcpy(text, input->at, size);
    text[size] = 0;
    input->at += found ? size + 1 : size;
    input->left -= found ? size + 1 : size;
    return text;
}

/* Takes all that is left, in a block of exactly that size, malloc'ed. */
static inline uint8_t *take_rest(struct input *input, size_t *size) {
    uint8_t *const block = malloc(input->left ? input->left : 1);
    promise(block);
    if (input->left)
        memcpy(block, input->at, input->left);
    *size = input->left;
    input->left = 0;
    return block;
}

/* Returns true if a text has no line break and no other control character. */
static inline bool is_one_line(const char *text) {
    for (; *text; text++)
        if ((unsigned char)*text < 0x20 || *text == 0x7f)
            return false;
    return true;
}

#endif
