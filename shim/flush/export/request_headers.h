/* The headers of one request: what the protocol asks for, and what OTEL_EXPORTER_OTLP_HEADERS has.
 * Context: flush.
 */
#ifndef OTELPROF_REQUEST_HEADERS_H
#define OTELPROF_REQUEST_HEADERS_H

#include "harvest.h"

#include <curl/curl.h>
#include <stdbool.h>
#include <stdint.h>

struct request_headers {
    struct curl_slist *list; /* for CURLOPT_HTTPHEADER */
    bool said;               /* what is wrong with those that are configured */
};

/* How long the receiver may take for one request: the shorter of the two settings. */
uint64_t request_timeout_ms(const struct config *config);

/* Makes the list. `encoding`: of the body; NULL: it is not compressed. What there is no memory for
 * is left out. What is wrong in the setting is written to the log the first time, and left out. */
void request_headers_make(struct request_headers *headers, const struct capture_api *api,
                          const char *encoding);

/* Frees the list. */
void request_headers_free(struct request_headers *headers);

#endif
