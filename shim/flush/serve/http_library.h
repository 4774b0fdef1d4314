/* Loads libmicrohttpd, but only if the process must listen: if it were linked, the library would
 * bring a TLS library into every process. The bundle contains it (HTTP_LIBRARY_LINKED), without
 * TLS. Context: flush, under the quiesce lock. */
#ifndef OTELPROF_HTTP_LIBRARY_H
#define OTELPROF_HTTP_LIBRARY_H

#include <microhttpd.h>

struct http_library {
#define HTTP_FUNCTION(name) __typeof__(MHD_##name) *name;
#include "http_library.def"
#undef HTTP_FUNCTION
};

#define HTTP_LIBRARY_NAME "libmicrohttpd.so.12"

/* Loads the library. Returns NULL if the library is missing, lacks a function, or is used by the
 * program. Once loaded, it stays loaded. */
const struct http_library *http_library(void);

#endif
