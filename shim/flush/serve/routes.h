/* Routes requests to their replies (routes.def), after checking the client's rights (access.h).
 * Context: flush. */
#ifndef OTELPROF_ROUTES_H
#define OTELPROF_ROUTES_H

#include "serve_state.h"

/* Replies to the request, or opens a window for it. */
void route_request(struct serve *serve, struct http_request *request);

/* Replies to the request of a window: with status 503 if the window was refused or is not
 * finished. */
void reply_to_window(struct serve *serve, struct window *window);

#endif
