/* Checks UTF-8: protobuf strings must be UTF-8; file names, thread names and symbols need not be.
 */
#ifndef OTELPROF_UTF8_H
#define OTELPROF_UTF8_H

#include <stddef.h>
#include <stdint.h>

/* Returns the length in bytes of the well-formed sequence (Unicode 15, table 3-7) at `text`; 0 if
 * there is none. The terminating NUL is a sequence of one byte, behind which no byte is read.
 * Context: any. */
size_t utf8_sequence(const char *text);

/* Returns the number of the character whose sequence, of `length` bytes, is at `sequence`. Context:
 * any. */
uint32_t utf8_code_point(const char *sequence, size_t length);

/* Returns where a text of at least `size` bytes may be cut, `size` or some bytes before it, so that
 * no character is cut in two. Context: any. */
size_t utf8_cut(const char *text, size_t size);

/* Replaces every byte that is not part of a well-formed sequence by '?'. Context: any. */
void utf8_make_valid(char *text);

#endif
