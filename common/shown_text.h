/* What others wrote, as it is shown to people: a value of a variable, a path, a receiver's message,
 * a function's name. In a line of a log, a table, a terminal it may neither begin another line nor
 * command the terminal, and it ends.
 *
 * Control characters (of ASCII, of Latin-1, and those that turn the direction of writing or end a
 * line in Unicode) and what is no UTF-8 are shown as bytes, "\x1b"; the rest as it is. What is too
 * long is cut, and ends in "...". What was shown so before stays as it is.
 * Context: any. Async-signal-safe: yes.
 */
#ifndef OTELPROF_SHOWN_TEXT_H
#define OTELPROF_SHOWN_TEXT_H

#include <stddef.h>

/* The most that a log line has of one value. */
enum { SHOWN_MOST = 512 };

/* Writes `size` bytes of `text`, or up to its NUL, as at most `room` bytes to `to`, without a NUL
 * behind them. Returns how many it wrote. */
size_t shown_text(char *to, size_t room, const char *text, size_t size);

#endif
