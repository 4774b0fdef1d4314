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
    bool errors_logged;      /* errors in the configured headers were logged */
};

/* Returns the limit for one request: the shorter of the two settings. */
uint64_t request_timeout_ms(const struct config *config);

/* Makes the list. `encoding`: of the body; NULL: not compressed. Headers are left out if memory is
 * short, or if the setting has errors; errors are logged the first time. */
void request_headers_make(struct request_headers *headers, const struct capture_api *api,
                          const char *encoding);

/* Frees the list. */
void request_headers_free(struct request_headers *headers);

#endif
