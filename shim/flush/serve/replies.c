#include "replies.h"

#include "written_text.h"

#include <microhttpd.h>
#include <string.h>

static void reply_with(struct http_request *request, unsigned status, const char *type,
                       struct wire *written) {
    struct http_reply reply = {.status = status, .type = type};
    reply.bytes = wire_take(written, &reply.size);
    if (!reply.bytes)
        reply = (struct http_reply){.status = MHD_HTTP_SERVICE_UNAVAILABLE, .type = type};
    http_reply(request, &reply);
}

void reply_text(struct http_request *request, unsigned status, const char *sentence) {
    struct wire written = {.bytes = NULL};
    text_add(&written, "%s\n", sentence);
    reply_with(request, status, "text/plain; charset=utf-8", &written);
}

void reply_written(struct http_request *request, const char *type, struct wire *written) {
    reply_with(request, MHD_HTTP_OK, type, written);
}
