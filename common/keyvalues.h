/* Parses lists "key=value,key2=value2" with percent-encoding, the form of OTEL_RESOURCE_ATTRIBUTES
 * and OTEL_EXPORTER_OTLP_HEADERS (W3C Baggage without properties).
 *
 * The whole text is checked before the first pair is reported: any error discards the whole text,
 * as the specification requires. Context: any; allocates nothing.
 */
#ifndef OTELPROF_KEYVALUES_H
#define OTELPROF_KEYVALUES_H

#include <stdbool.h>
#include <stddef.h>

/* Returns true if the list can be parsed; false for an element without "=", an empty key, a wrong
 * percent escape, an encoded NUL. Ignores blanks around keys, values and elements, and empty
 * elements. */
bool keyvalues_are_valid(const char *text);

typedef void keyvalues_visit(void *arg, const char *key, const char *value);

/* Calls `visit` for each pair, decoded, in order. `scratch` has room for strlen(text) + 1 bytes and
 * is overwritten; keys and values point into it. Returns false, without a visit, if `text` is not
 * valid.
 */
bool keyvalues_parse(const char *text, char *scratch, keyvalues_visit *visit, void *arg);

#endif
