#include "replies.h"

#include "written_text.h"

#include <microhttpd.h>
#include <string.h>

static const char plain_text[] = "text/plain; charset=utf-8";

static void reply_with(struct http_request *request, struct http_reply reply,
                       struct wire *written) {
    reply.bytes = wire_take(written, &reply.size);
    if (!reply.bytes)
        reply = (struct http_reply){.status = MHD_HTTP_SERVICE_UNAVAILABLE, .type = reply.type};
    http_reply(request, &reply);
}

void reply_text(struct http_request *request, unsigned status, const char *sentence) {
    const struct http_reply reply = {.status = status, .type = plain_text};
    struct wire written = {.bytes = NULL};
    text_add(&written, "%s\n", sentence);
    reply_with(request, reply, &written);
}

void reply_other_method(struct http_request *request, const char *methods) {
    const struct http_reply reply = {
        .status = MHD_HTTP_METHOD_NOT_ALLOWED, .type = plain_text, .allow = methods};
    struct wire written = {.bytes = NULL};
    text_add(&written, "This path has %s; the request is refused.\n", methods);
    reply_with(request, reply, &written);
}

void reply_written(struct http_request *request, const char *type, struct wire *written) {
    const struct http_reply reply = {.status = MHD_HTTP_OK, .type = type};
    reply_with(request, reply, written);
}
