/* Collects a gRPC call's outcome from the headers and trailers of the response.
 *
 * The caller feeds headers as they arrive, line by line. The status comes after the message, in the
 * trailers, or, without a message, in the only headers (a trailers-only response); this module
 * treats both alike. The server controls all input, so everything is bounded: a status that is not
 * a number is UNKNOWN, a text that is too long is cut (the log escapes it), and details that cannot
 * be decoded are ignored. Context: flush.
 */
#ifndef OTELPROF_GRPC_RESPONSE_H
#define OTELPROF_GRPC_RESPONSE_H

#include "grpc_message.h"

struct grpc_response {
    bool informational; /* the present headers have HTTP status 1xx, and do not describe the call */
    bool has_status;
    bool complete; /* the header block with the status has ended, so no header follows */
    enum grpc_code code;
    char message[2048]; /* grpc-message, decoded; "": none */
    bool has_retry_info;
    uint64_t retry_delay_nano; /* delay from RetryInfo; 0: the client chooses */
};

/* Takes one line from libcurl: "HTTP/2 200", "name: value", or empty at the end of a block, with or
 * without the line's end, and not NUL-terminated. A status line resets the response. */
void grpc_response_take_line(struct grpc_response *response, const char *line, size_t size);

#endif
