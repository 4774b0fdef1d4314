/* How gRPC wraps a message, and what its status codes mean to an exporter: pure functions.
 *
 * A message on the wire is one byte that says whether it is compressed, its length as four bytes
 * (big-endian), and its bytes. How a call ended is a code of its own, beside HTTP's status.
 * Context: flush.
 */
#ifndef OTELPROF_GRPC_MESSAGE_H
#define OTELPROF_GRPC_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The numbers are gRPC's (doc/statuscodes.md of its repository). */
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

/* "UNAVAILABLE" and so on. */
const char *grpc_code_name(enum grpc_code code);

/* May the same call be tried again? By the list of the OTLP specification: an exhausted resource
 * only where the server said when (RetryInfo). */
bool grpc_may_be_retried(enum grpc_code code, bool has_retry_info);

/* The code of an answer that has none of its own, from HTTP's status: it came from something
 * between us and the server, or from no gRPC server at all (doc/http-grpc-status-mapping.md). */
enum grpc_code grpc_code_of_http(long status);

/* Puts the prefix before `*bytes` (malloc'ed, `*size` long). false: no memory, or more than a
 * prefix can tell; the bytes are as they were. */
bool grpc_wrap(uint8_t **bytes, size_t *size, bool compressed);

/* The first message in `body`, its length, and whether it is compressed: servers answer by the
 * compression of the call, though no call has a grpc-accept-encoding. NULL: there is no complete
 * one. */
const uint8_t *grpc_unwrap(const uint8_t *body, size_t size, size_t *message_size,
                           bool *compressed);

#endif
