/* Writes text piece by piece into a growing buffer (wire.h): JSON, HTML, Prometheus' format.
 * Context: flush. */
#ifndef OTELPROF_WRITTEN_TEXT_H
#define OTELPROF_WRITTEN_TEXT_H

#include "wire.h"

/* Formats as printf(3) does. Do not print floating-point numbers: the decimal point depends on the
 * program's locale. */
void text_add(struct wire *text, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Adds a JSON string with quotes. Each byte that is not UTF-8 becomes U+FFFD. */
void text_add_json(struct wire *text, const char *string);

/* Adds a label value of Prometheus' text format with quotes. Escapes only quotes, backslashes and
 * newlines: the format has no other escapes. */
void text_add_prometheus(struct wire *text, const char *string);

/* Escapes text for HTML. */
void text_add_html(struct wire *text, const char *string);

/* Adds nanoseconds as seconds with nine decimals. */
void text_add_seconds(struct wire *text, uint64_t nano);

#endif
