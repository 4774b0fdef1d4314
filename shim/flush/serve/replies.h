/* Short answers. Context: flush. */
#ifndef OTELPROF_REPLIES_H
#define OTELPROF_REPLIES_H

#include "http_server.h"
#include "wire.h"

/* A sentence and the end of the line, as text/plain. */
void reply_text(struct http_request *request, unsigned status, const char *sentence);

/* The path has no such method, but these: "GET, HEAD". `methods` is static. */
void reply_other_method(struct http_request *request, const char *methods);

/* What was written, which is empty afterwards; where there was no memory for it, that is said. */
void reply_written(struct http_request *request, const char *type, struct wire *written);

#endif
