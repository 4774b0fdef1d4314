/* Decides which client may send which request.
 *
 * Over a Unix socket, root and the process's user may do anything. Over a TCP port of this machine,
 * every local client may read, with OTEL_PROFILER_LISTEN_TOKEN if that is set (`Authorization:
 * Bearer TOKEN`); changes also need OTEL_PROFILER_LISTEN_CONTROL=true. Web pages get no access
 * through a browser: the Host header must name this machine, and the request must not come from
 * another page.
 * Context: flush.
 */
#ifndef OTELPROF_ACCESS_H
#define OTELPROF_ACCESS_H

#include "http_server.h"

enum access_right { READ, CHANGE };

/* Checks the request. Returns NULL if it is allowed. Otherwise returns the reason as one sentence,
 * and the HTTP status in *status. */
const char *access_refusal(const struct config *config, const struct http_request *request,
                           enum access_right right, unsigned *status);

#endif
