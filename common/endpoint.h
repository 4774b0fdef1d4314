/* Turns the text of OTEL_EXPORTER_OTLP_ENDPOINT into a destination for a client.
 *
 * The text has one of three forms: a URL (http:// or https://), a Unix socket (unix:/path or
 * unix:///path), or, for gRPC alone, "host:port" without a scheme, which means TLS unless the
 * variable for insecure connections is true. TLS through a socket is requested by other variables;
 * the receiver's certificate must then name "localhost". Each form becomes one complete URL, and
 * the socket's path if there is one. For HTTP, the path of the signal is appended to the generic
 * variable, but not to the variable for profiles. A gRPC call has a path of its own, so a URL's
 * path is ignored. Context: calm. Async-signal-safe: yes.
 */
#ifndef OTELPROF_ENDPOINT_H
#define OTELPROF_ENDPOINT_H

#include <stdbool.h>
#include <stddef.h>

struct endpoint_rules {
    bool grpc;
    bool insecure;     /* applies to a text without a scheme */
    bool unix_tls;     /* TLS through a Unix socket */
    bool for_profiles; /* the text is the ..._PROFILES_ENDPOINT form */
};

struct endpoint {
    const char *url;
    const char *unix_socket; /* absolute path; "": none, connect to the URL's host */
    size_t size;             /* bytes of the buffer that both strings use */
};

enum endpoint_result { ENDPOINT_FITS, ENDPOINT_MALFORMED, ENDPOINT_TOO_LONG };

/* Fills in `*endpoint`, whose strings are written to `buffer` of `size` bytes. They are valid only
 * if the result is ENDPOINT_FITS. A socket's path must fit in a sockaddr_un. */
enum endpoint_result endpoint_parse(const char *text, struct endpoint_rules rules, char *buffer,
                                    size_t size, struct endpoint *endpoint);

/* Return the default address of a Collector, in static storage. */
const char *endpoint_default_base(bool grpc); /* as the user would write it */
const char *endpoint_default_url(bool grpc);  /* as a complete URL */

#endif
