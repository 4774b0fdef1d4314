/* What serve.c and the answers share. Context of all: flush. */
#ifndef OTELPROF_SERVE_STATE_H
#define OTELPROF_SERVE_STATE_H

#include "http_server.h"
#include "serve.h"
#include "window.h"

struct serve {
    struct serve_of of;
    struct listen_address address;
    struct listen_socket socket;
    struct http_server *server; /* NULL: suspended, or it has failed, or it waits */
    bool waits;                 /* for its place, which another process has, or which is gone */
    bool has_sums;              /* `since_start` is open */
    uint64_t sums_since_unix;   /* where the first interval in it began */
    uint64_t taken_unix;        /* the end of the last interval; 0: the first is not over */
    struct window *windows;
    struct pprof_sum *since_start[PPROF_KINDS]; /* NULL: not profiled, or not of the start */
    bool in_export;                             /* its first request has been taken */
};

/* The sum that a kind is answered from where no time is asked for. */
struct pprof_sum *serve_since_start(const struct serve *serve, enum pprof_kind kind);

void serve_add_window(struct serve *serve, struct window *window);

#endif
