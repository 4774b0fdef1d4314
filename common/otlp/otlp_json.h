/* Writes a message as OTLP's JSON: the body of an `http/json` request, or a line of a .jsonl file.
 *
 * There is no code for any message and no list of fields to keep: the descriptors that the protobuf
 * compiler generates from proto/ are the one table, and the writer walks a message along them. The
 * mapping is protobuf's, with OTLP's exceptions: names in lowerCamelCase; trace_id, span_id and
 * profile_id in hex, other bytes in base64; 64-bit integers as strings; enums as integers; default
 * values are left out, except in lists and oneofs. In strings, each byte that is not UTF-8 becomes
 * U+FFFD. The text has no line breaks.
 * Specification: opentelemetry.io/docs/specs/otlp, "JSON Protobuf Encoding".
 * Context: flush.
 */
#ifndef OTELPROF_OTLP_JSON_H
#define OTELPROF_OTLP_JSON_H

#include <protobuf-c/protobuf-c.h>
#include <stddef.h>

/* Returns the text, `*size` bytes without a terminating NUL, malloc'ed, the caller's. NULL: no
 * memory, or messages nested more than 100 deep (as deep as protobuf's own decoders go). */
char *otlp_json(const ProtobufCMessage *message, size_t *size);

#endif
