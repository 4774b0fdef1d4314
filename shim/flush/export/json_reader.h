/* Reads foreign JSON piece by piece, for callers that need two or three members of it.
 *
 * The reader is a cursor over bytes that need not end in NUL: the caller reads the values that it
 * expects and skips the rest. No memory is allocated, and nesting is bounded. After the first error
 * (of the text, or an unexpected value) the reader stays `failed`, and every further call fails,
 * too, so one check at the end suffices. No library is used: jansson and json-c export the same
 * names with different meanings, and a program may bring either; both refuse a whole text for a
 * lone surrogate or an invalid byte in a receiver's message; Debian 12 has no yyjson. Context:
 * flush.
 */
#ifndef OTELPROF_JSON_READER_H
#define OTELPROF_JSON_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct json_reader {
    const char *at;
    const char *end;
    unsigned depth; /* number of objects and lists that the cursor is in */
    bool failed;
};

/* Receives a member; must consume the member's value by one call of json_*(). `name` is cut at 63
 * bytes. */
typedef void json_member(void *arg, struct json_reader *reader, const char *name);

/* Each of these functions consumes one value of its kind; `null` counts as a value of any kind, and
 * leaves the result unchanged. Returns false if the reader has failed. */
bool json_object(struct json_reader *reader, json_member *member, void *arg);
/* Stores the text with a NUL behind it; a text that does not fit into `size` bytes is cut between
 * two characters. The escapes of lone surrogates become U+FFFD, and so does that of U+0000, which
 * would end the text. Bytes that are not UTF-8 stay as they are. */
bool json_string(struct json_reader *reader, char *text, size_t size);
/* Accepts a number without fraction, or such a number as a string (protobuf's form). */
bool json_int64(struct json_reader *reader, int64_t *value);
/* Skips a value of any kind. */
bool json_skip(struct json_reader *reader);

/* Returns whether the whole text was read without an error. */
bool json_complete(struct json_reader *reader);

#endif
