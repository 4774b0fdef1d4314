/* Who may ask for what.
 *
 * Over a Unix socket: root and the process's user, anything. Over a port of this machine: whoever
 * is on it, with OTEL_PROFILER_LISTEN_TOKEN where that is set (`Authorization: Bearer TOKEN`), and
 * changes only with OTEL_PROFILER_LISTEN_CONTROL=true. A browser is no way in: the request must
 * name this machine as its host, and come from no other page. Context: flush.
 */
#ifndef OTELPROF_ACCESS_H
#define OTELPROF_ACCESS_H

#include "http_server.h"

enum access_right { READ, CHANGE };

/* NULL: it may. Otherwise why not, in one sentence, and the status. */
const char *access_refusal(const struct config *config, const struct http_request *request,
                           enum access_right right, unsigned *status);

#endif
