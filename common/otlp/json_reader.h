/* Reads JSON that a stranger wrote, piece by piece, where two or three members of it are wanted.
 *
 * A cursor over bytes that need not end in NUL: the caller asks for what it expects and skips the
 * rest. Nothing is allocated, nesting is bounded, and after the first mistake (of the text, or in
 * what was expected) the reader is `failed` for good: every further call fails too, so one check at
 * the end is enough. No library does this here: those that are packaged (jansson, json-c) export
 * the same names with different meanings, and a program may bring either.
 * Context: flush.
 */
#ifndef OTELPROF_JSON_READER_H
#define OTELPROF_JSON_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct json_reader {
    const char *at;
    const char *end;
    unsigned depth; /* of objects and lists entered */
    bool failed;
};

/* Must consume the member's value by one call of json_*(). `name` is cut at 63 bytes. */
typedef void json_member(void *arg, struct json_reader *reader, const char *name);

/* Each of them consumes one value, of that kind; `null` counts as a value of any kind and changes
 * nothing. false: the reader has failed. */
bool json_object(struct json_reader *reader, json_member *member, void *arg);
/* As UTF-8 and NUL-terminated; what does not fit into `size` bytes is cut off between two
 * characters. Lone surrogates become U+FFFD, and so does U+0000, which would end the text. */
bool json_string(struct json_reader *reader, char *text, size_t size);
/* A number without fraction, or such a number as a string (protobuf's form). */
bool json_int64(struct json_reader *reader, int64_t *value);
/* A value of any kind. */
bool json_skip(struct json_reader *reader);

/* Whether everything has been read, without a mistake and with nothing behind it. */
bool json_complete(struct json_reader *reader);

#endif
