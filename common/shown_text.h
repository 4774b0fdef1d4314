/* Makes foreign text printable: a value of a variable, a path, a receiver's message, a function's
 * name. Such a text can neither begin another line of a log or table, nor control a terminal, and
 * its length is bounded.
 *
 * Control characters (of ASCII, of Latin-1, and Unicode's that turn the direction of writing or end
 * a line) and invalid UTF-8 are shown as bytes, "\x1b"; the rest is unchanged. A text that is too
 * long is cut, and ends in "...". A second pass over the result changes nothing. Context: any.
 * Async-signal-safe: yes.
 */
#ifndef OTELPROF_SHOWN_TEXT_H
#define OTELPROF_SHOWN_TEXT_H

#include <stddef.h>

/* Bounds the bytes of one value in a log line. */
enum { SHOWN_MOST = 512 };

/* Writes `size` bytes of `text`, or up to its NUL, to `to`: at most `room` bytes, without a
 * terminating NUL. Returns the number of bytes written. */
size_t shown_text(char *to, size_t room, const char *text, size_t size);

/* Returns how many bytes at the beginning of `size` bytes of `text`, or up to its NUL, can be shown
 * unchanged. A writer with room for the whole text uses it. */
size_t shown_plain(const char *text, size_t size);

#endif
