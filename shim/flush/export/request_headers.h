/* Builds the headers of one request: the protocol's headers and the headers of
 * OTEL_EXPORTER_OTLP_HEADERS. Context: flush.
 */
#ifndef OTELPROF_REQUEST_HEADERS_H
#define OTELPROF_REQUEST_HEADERS_H

#include "harvest.h"

#include <curl/curl.h>
#include <stdbool.h>
#include <stdint.h>

struct request_headers {
    struct curl_slist *list; /* the list for CURLOPT_HTTPHEADER */
    bool errors_logged;      /* the configured headers were checked once, and errors logged */
};

/* Returns the limit for all requests of one export together, in milliseconds: the shorter of
 * OTEL_EXPORTER_OTLP_TIMEOUT and OTEL_PROFILE_EXPORT_TIMEOUT. */
uint64_t request_timeout_ms(const struct config *config);

/* Makes the list. `encoding`: of the body; NULL: not compressed. `timeout_ms`: of this request.
 * Leaves out headers for which there is no memory, configured headers that would break a line or
 * have a wrong name (which is logged the first time), and all configured headers if their list
 * cannot be parsed. */
void request_headers_make(struct request_headers *headers, const struct capture_api *api,
                          const char *encoding, uint64_t timeout_ms);

/* Frees the list. */
void request_headers_free(struct request_headers *headers);

#endif
