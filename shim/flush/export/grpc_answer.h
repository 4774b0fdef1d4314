/* How a gRPC call ended, gathered from the headers and trailers of its answer.
 *
 * Headers are fed as they arrive, line by line. The status comes behind the message, in the
 * trailers, or at once in the only headers (an answer of trailers alone): which of both makes no
 * difference here. Everything is the other side's and bounded: a status that is no number is
 * UNKNOWN, of a text what fits is kept, for the log to escape, and details that cannot be
 * decoded are as if there were none. Context: flush.
 */
#ifndef OTELPROF_GRPC_ANSWER_H
#define OTELPROF_GRPC_ANSWER_H

#include "grpc_message.h"

struct grpc_answer {
    bool informational; /* within headers of HTTP status 1xx, which say nothing about the call */
    bool has_status;
    bool complete; /* the block of headers that held the status has ended: nothing follows */
    enum grpc_code code;
    char message[2048]; /* grpc-message, decoded; "" = none */
    bool has_retry_info;
    uint64_t retry_delay_nano; /* of RetryInfo; 0 = as the client likes */
};

/* One line as libcurl has it: "HTTP/2 200", "name: value", or empty at the end of a block, with or
 * without the line's end, and not NUL-terminated. A status line begins the answer anew. */
void grpc_answer_take(struct grpc_answer *answer, const char *line, size_t size);

#endif
