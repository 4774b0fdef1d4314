/* Writes text piece by piece into a growing buffer (wire.h): JSON, HTML, Prometheus' format.
 * Context: flush. */
#ifndef OTELPROF_WRITTEN_TEXT_H
#define OTELPROF_WRITTEN_TEXT_H

#include "wire.h"

/* Formats as printf(3) does. Not for floating-point numbers, whose decimal point depends on the
 * program's locale. */
void text_add(struct wire *text, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Adds foreign text, in which control characters and invalid UTF-8 become "\x1b" (shown_text.h). */
void text_add_shown(struct wire *text, const char *string);

/* Adds a JSON string with quotes. Each byte that is not UTF-8 becomes U+FFFD; control characters
 * and those that turn the direction of writing (shown_text.h) are escaped, "\u202e". */
void text_add_json(struct wire *text, const char *string);

/* Adds a label value of Prometheus' text format with quotes. Quotes, backslashes and ends of lines
 * are escaped, a tab stays; other characters are shown as by text_add_shown(). */
void text_add_prometheus(struct wire *text, const char *string);

/* Adds text escaped for HTML, and shown as by text_add_shown(). */
void text_add_html(struct wire *text, const char *string);

/* Adds nanoseconds as seconds with nine decimals. */
void text_add_seconds(struct wire *text, uint64_t nano);

#endif
