/* State shared by serve.c and the replies. Context of all: flush. */
#ifndef OTELPROF_SERVE_STATE_H
#define OTELPROF_SERVE_STATE_H

#include "http_server.h"
#include "serve.h"
#include "window.h"

struct serve {
    struct serve_of of;
    struct listen_address address;
    struct listen_socket socket;
    struct http_server *server; /* NULL: suspended, damaged, or waiting for the address */
    bool waits;    /* for the address, which another process holds or which cannot be opened */
    bool has_sums; /* since_start is open */
    uint64_t sums_since_unix; /* begin of the first interval in since_start */
    uint64_t taken_unix;      /* end of the last interval; 0: the first has not ended */
    struct window *windows;
    struct pprof_sum *since_start[PPROF_KINDS]; /* NULL: not profiled, or not cumulative */
    bool in_export; /* the current export's first request has been taken */
};

/* Returns the cumulative sum of a kind, for requests without `seconds`. */
struct pprof_sum *serve_since_start(const struct serve *serve, enum pprof_kind kind);

void serve_add_window(struct serve *serve, struct window *window);

#endif
