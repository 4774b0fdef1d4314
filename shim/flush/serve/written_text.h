/* Text for people and programs, written piece by piece into a buffer that grows (wire.h): JSON,
 * HTML, Prometheus' format. Context: flush. */
#ifndef OTELPROF_WRITTEN_TEXT_H
#define OTELPROF_WRITTEN_TEXT_H

#include "wire.h"

/* As printf(3) has it. No number with a decimal point: that would be the program's locale's. */
void text_add(struct wire *text, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* A string of JSON with its quotes. What is no UTF-8 is replaced. */
void text_add_json(struct wire *text, const char *string);

/* A label's value in Prometheus' text format, with its quotes: it has no other escapes than those
 * of a quote, a backslash and the end of a line. */
void text_add_prometheus(struct wire *text, const char *string);

/* Inside of HTML. */
void text_add_html(struct wire *text, const char *string);

/* Nanoseconds as seconds, with nine digits behind the point. */
void text_add_seconds(struct wire *text, uint64_t nano);

#endif
