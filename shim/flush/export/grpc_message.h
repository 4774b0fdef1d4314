/* Wraps messages for gRPC and interprets its status codes: pure functions.
 *
 * On the wire a message is one byte for "compressed", four bytes for its length (big-endian), and
 * its bytes. A call's outcome is a code of its own, besides HTTP's status. Context: flush.
 */
#ifndef OTELPROF_GRPC_MESSAGE_H
#define OTELPROF_GRPC_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Lists gRPC's codes, with the numbers of doc/statuscodes.md in its repository. */
enum grpc_code {
    GRPC_OK,
    GRPC_CANCELLED,
    GRPC_UNKNOWN,
    GRPC_INVALID_ARGUMENT,
    GRPC_DEADLINE_EXCEEDED,
    GRPC_NOT_FOUND,
    GRPC_ALREADY_EXISTS,
    GRPC_PERMISSION_DENIED,
    GRPC_RESOURCE_EXHAUSTED,
    GRPC_FAILED_PRECONDITION,
    GRPC_ABORTED,
    GRPC_OUT_OF_RANGE,
    GRPC_UNIMPLEMENTED,
    GRPC_INTERNAL,
    GRPC_UNAVAILABLE,
    GRPC_DATA_LOSS,
    GRPC_UNAUTHENTICATED,
    GRPC_CODE_COUNT,
};

/* Returns the code's name, for example "UNAVAILABLE"; "UNKNOWN" for a number that is no code. */
const char *grpc_code_name(enum grpc_code code);

/* Returns true if the OTLP specification lets the client retry the call; an exhausted resource only
 * if the server sent a delay (RetryInfo). */
bool grpc_may_be_retried(enum grpc_code code, bool has_retry_info);

/* Maps HTTP's status to the code of a response without a gRPC status: such a response comes from an
 * intermediary, or from a server without gRPC (doc/http-grpc-status-mapping.md). */
enum grpc_code grpc_code_of_http(long status);

/* Puts the prefix before `*bytes` (malloc'ed, `*size` long), and updates both. Returns false
 * without memory, or if the size does not fit the prefix; the bytes are then unchanged. */
bool grpc_wrap(uint8_t **bytes, size_t *size, bool compressed);

/* Returns the first message in `body`, its length, and its compressed flag; NULL if no message is
 * complete, or if the flag is invalid. The flag may be set although the exporter sends no
 * grpc-accept-encoding, because servers compress a response if the call was compressed. */
const uint8_t *grpc_unwrap(const uint8_t *body, size_t size, size_t *message_size,
                           bool *compressed);

#endif
