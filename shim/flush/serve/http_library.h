/* libmicrohttpd, which is loaded only where the process is to answer: it would bring a TLS library
 * into every process. The bundle has it inside (HTTP_LIBRARY_LINKED), without TLS. Context: flush,
 * under the quiesce lock. */
#ifndef OTELPROF_HTTP_LIBRARY_H
#define OTELPROF_HTTP_LIBRARY_H

#include <microhttpd.h>

struct http_library {
#define HTTP_FUNCTION(name) __typeof__(MHD_##name) *name;
#include "http_library.def"
#undef HTTP_FUNCTION
};

#define HTTP_LIBRARY_NAME "libmicrohttpd.so.12"

/* NULL: it is not there, is another than we know, or the program has it. Once loaded it stays. */
const struct http_library *http_library(void);

#endif
