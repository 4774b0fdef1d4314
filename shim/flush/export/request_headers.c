#include "request_headers.h"

#include "keyvalues.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- one line --- */

/* Adds a header line. libcurl removes a header for "name:", and sends it without a value for
 * "name;". */
static void request_headers_add_line(struct request_headers *headers, const char *name,
                                     const char *between, const char *value) {
    char *line = NULL;
    if (asprintf(&line, "%s%s%s", name, between, value) < 0)
        return;
    struct curl_slist *const longer = curl_slist_append(headers->list, line);
    free(line);
    if (longer)
        headers->list = longer;
}

static void add_header(struct request_headers *headers, const char *name, const char *value) {
    request_headers_add_line(headers, name, ": ", value);
}

/* --- headers of the setting --- */

struct making {
    struct request_headers *headers;
    const struct log *log;
};

/* Logs neither name nor value: they may be secrets. */
static void add_configured(void *arg, const char *name, const char *value) {
    const struct making *const making = arg;
    if (!strpbrk(name, "\r\n:;") && !strpbrk(value, "\r\n"))
        request_headers_add_line(making->headers, name, value[0] ? ": " : ";", value);
    else if (!making->headers->errors_logged)
        log_write(making->log, log_level_in_tree(making->log, LOG_HEADERS, LOG_WARN),
                  "OTEL_EXPORTER_OTLP_HEADERS has a header with a line break, or a name "
                  "with a colon or semicolon; it is left out");
}

static void add_all_configured(struct request_headers *headers, const struct capture_api *api) {
    const char *const text = api->config->headers;
    char *const scratch = malloc(strlen(text) + 1);
    struct making making = {headers, api->log};
    if (scratch)
        (void)keyvalues_parse(text, scratch, add_configured, &making);
    free(scratch);
    headers->errors_logged = true;
}

/* --- headers of the protocol --- */

uint64_t request_timeout_ms(const struct config *config) {
    return config->timeout_ms < config->export_timeout_ms ? config->timeout_ms
                                                          : config->export_timeout_ms;
}

void request_headers_make(struct request_headers *headers, const struct capture_api *api,
                          const char *encoding, uint64_t timeout_ms) {
    const bool grpc = api->config->protocol == PROTOCOL_GRPC;
    const bool json = api->config->protocol == PROTOCOL_HTTP_JSON;
    if (grpc) {
        /* at most eight digits and a unit: OTEL_EXPORTER_OTLP_TIMEOUT is bounded */
        char timeout[32];
        snprintf(timeout, sizeof timeout, "%llum", (unsigned long long)timeout_ms);
        add_header(headers, "Content-Type", "application/grpc");
        /* without this header the server may assume an old proxy */
        add_header(headers, "TE", "trailers");
        add_header(headers, "grpc-timeout", timeout);
    } else {
        add_header(headers, "Content-Type", json ? "application/json" : "application/x-protobuf");
    }
    add_header(headers, "OTLP-Profiles-Development-Version", "1");
    /* without this line libcurl would wait a round trip before it sends the body */
    add_header(headers, "Expect", "");
    add_all_configured(headers, api);
    if (encoding)
        add_header(headers, grpc ? "grpc-encoding" : "Content-Encoding", encoding);
}

void request_headers_free(struct request_headers *headers) {
    curl_slist_free_all(headers->list);
    headers->list = NULL;
}
