/* What the process answers to which request, and to whom: routes.def. Context: flush. */
#ifndef OTELPROF_ANSWERS_H
#define OTELPROF_ANSWERS_H

#include "serve_state.h"

/* Replies to it, or opens a window for it. */
void answer_request(struct serve *serve, struct http_request *request);

/* Replies to the request of a window that is over. */
void answer_window(struct serve *serve, struct window *window);

#endif
