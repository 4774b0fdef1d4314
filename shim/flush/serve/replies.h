/* Short replies. Context: flush. */
#ifndef OTELPROF_REPLIES_H
#define OTELPROF_REPLIES_H

#include "http_server.h"
#include "wire.h"

/* Replies with the sentence and a newline, as text/plain. */
void reply_text(struct http_request *request, unsigned status, const char *sentence);

/* Replies that the path allows only `methods`, for example "GET, HEAD"; a static string. */
void reply_other_method(struct http_request *request, const char *methods);

/* Replies with the written bytes, and empties `written`. Replies 503 if there was no memory for
 * them. */
void reply_written(struct http_request *request, const char *type, struct wire *written);

#endif
