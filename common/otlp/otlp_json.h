/* Writes a message as OTLP's JSON: the body of an `http/json` request, or a line of a .jsonl file.
 *
 * There is no code and no list of fields for a single message: the writer walks each message by the
 * descriptors that the protobuf compiler generates from proto/. The mapping is protobuf's, with
 * OTLP's exceptions: names in lowerCamelCase; trace_id, span_id and profile_id in hex, other bytes
 * in base64; 64-bit integers as strings; enums as integers; default values are left out, except in
 * lists and oneofs. In strings, each byte that is not UTF-8 becomes U+FFFD. The text has no line
 * breaks. Specification: opentelemetry.io/docs/specs/otlp, "JSON Protobuf Encoding". Context:
 * flush.
 */
#ifndef OTELPROF_OTLP_JSON_H
#define OTELPROF_OTLP_JSON_H

#include <protobuf-c/protobuf-c.h>
#include <stddef.h>

/* Returns the text, malloc'ed, `*size` bytes without a terminating NUL; the caller frees it. NULL:
 * no memory, or messages are nested more than 100 deep, which protobuf's own decoders refuse. */
char *otlp_json(const ProtobufCMessage *message, size_t *size);

#endif
