#include "grpc_message.h"

#include <stdlib.h>
#include <string.h>

enum { PREFIX_BYTES = 5 };

const char *grpc_code_name(enum grpc_code code) {
    static const char *const names[] = {
        "OK",
        "CANCELLED",
        "UNKNOWN",
        "INVALID_ARGUMENT",
        "DEADLINE_EXCEEDED",
        "NOT_FOUND",
        "ALREADY_EXISTS",
        "PERMISSION_DENIED",
        "RESOURCE_EXHAUSTED",
        "FAILED_PRECONDITION",
        "ABORTED",
        "OUT_OF_RANGE",
        "UNIMPLEMENTED",
        "INTERNAL",
        "UNAVAILABLE",
        "DATA_LOSS",
        "UNAUTHENTICATED",
    };
    _Static_assert(sizeof names / sizeof *names == GRPC_CODE_COUNT, "one name for each code");
    return (unsigned)code < GRPC_CODE_COUNT ? names[code] : names[GRPC_UNKNOWN];
}

bool grpc_may_be_retried(enum grpc_code code, bool has_retry_info) {
    switch (code) {
    case GRPC_CANCELLED:
    case GRPC_DEADLINE_EXCEEDED:
    case GRPC_ABORTED:
    case GRPC_OUT_OF_RANGE:
    case GRPC_UNAVAILABLE:
    case GRPC_DATA_LOSS:
        return true;
    case GRPC_RESOURCE_EXHAUSTED:
        return has_retry_info;
    default:
        return false;
    }
}

enum grpc_code grpc_code_of_http(long status) {
    switch (status) {
    case 400:
        return GRPC_INTERNAL;
    case 401:
        return GRPC_UNAUTHENTICATED;
    case 403:
        return GRPC_PERMISSION_DENIED;
    case 404:
        return GRPC_UNIMPLEMENTED;
    case 429:
    case 502:
    case 503:
    case 504:
        return GRPC_UNAVAILABLE;
    default:
        return GRPC_UNKNOWN;
    }
}

bool grpc_wrap(uint8_t **bytes, size_t *size, bool compressed) {
    if (*size > UINT32_MAX)
        return false;
    uint8_t *const wrapped = realloc(*bytes, *size + PREFIX_BYTES);
    if (!wrapped)
        return false;
    memmove(wrapped + PREFIX_BYTES, wrapped, *size);
    wrapped[0] = compressed;
    for (int i = 0; i < 4; i++)
        wrapped[1 + i] = (uint8_t)(*size >> (24 - 8 * i));
    *bytes = wrapped;
    *size += PREFIX_BYTES;
    return true;
}

const uint8_t *grpc_unwrap(const uint8_t *body, size_t size, size_t *message_size,
                           bool *compressed) {
    if (size < PREFIX_BYTES || body[0] > 1)
        return NULL;
    size_t stated = 0;
    for (int i = 0; i < 4; i++)
        stated = stated << 8 | body[1 + i];
    if (stated > size - PREFIX_BYTES)
        return NULL;
    *message_size = stated;
    *compressed = body[0];
    return body + PREFIX_BYTES;
}
