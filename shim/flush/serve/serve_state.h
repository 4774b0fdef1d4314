/* Declares the state shared by serve.c, which exports fill, and routes.c, which opens windows.
 * Context of all: flush. */
#ifndef OTELPROF_SERVE_STATE_H
#define OTELPROF_SERVE_STATE_H

#include "cumulative_sums.h"
#include "http_server.h"
#include "serve.h"
#include "window.h"

struct serve {
    struct serve_of of;
    struct listen_address address;
    struct listen_socket socket;
    struct http_server *server; /* NULL: suspended, damaged, or waiting for the address */
    /* the process waits for the address, which another process holds or which cannot be opened */
    bool waits;
    struct cumulative_sums sums;
    uint64_t taken_unix; /* end of the last interval; 0: the first has not ended */
    struct window *windows;
    uint64_t status_second; /* CLOCK_MONOTONIC: the second in which status_replies counts */
    uint32_t status_replies;
    bool is_ending; /* the process has made its last export */
    bool in_export; /* the current export's first part has been taken */
};

#endif
