/* Requests over HTTP, at a socket that listens: taken by libmicrohttpd without a thread of its own,
 * in the helper's waits, and answered when there is an answer.
 *
 *   MHD reads a request ──► it waits here, suspended ──► http_server_next() hands it over
 *        ▲                                                      │
 *        └── MHD sends the answer ◄── http_reply(), any time later
 *
 * Bounds: 32 connections, 16 KiB of memory each, 4 KiB of a request's body (what is
 * more is read and left out), 10 s for a request, 60 s to take its answer, and one request a
 * connection. What goes over them is refused or closed. An answer that nobody takes ends with its
 * connection. Where the library finds itself damaged (its "panic", which would abort the process)
 * the server ends, and the program does not notice. Context of all: flush.
 */
#ifndef OTELPROF_HTTP_SERVER_H
#define OTELPROF_HTTP_SERVER_H

#include "harvest.h"
#include "listen_socket.h"

#include <microhttpd.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct http_server;

struct http_request {
    const char *method;
    const char *path;
    const char *body; /* ends in NUL */
    size_t body_size;
    bool is_cut; /* it had more than the bound: what is here is its beginning */
    void *own;   /* the owner's, who gets it back in `gone` */
    struct http_connection *connection;
};

struct http_reply {
    unsigned status;   /* 200 */
    const char *type;  /* Content-Type; static */
    const char *file;  /* a name for who saves it, or NULL; static */
    const char *allow; /* the methods that the path has, or NULL; static */
    bool is_unsized;   /* to HEAD: how long the body of GET would be is not known */
    uint8_t *bytes;    /* malloc'ed; the server's from now on; not sent to HEAD */
    size_t size;
};

/* `gone` is called for each request that was handed over, when it is over: answered or not. It must
 * not reply. The descriptor of `at` is the server's from now on, also where it cannot be opened:
 * NULL, the library is not there, or refuses. */
typedef void http_gone(void *arg, struct http_request *request);
struct http_server *http_server_open(const struct capture_api *api, struct listen_socket *at,
                                     http_gone *gone, void *arg);

/* Ends all connections. NULL will do. */
void http_server_close(struct http_server *server);

/* A request that has not been handed over yet, or NULL. It is there until http_reply(), or until it
 * is `gone` in http_server_step() or http_server_close(). */
struct http_request *http_server_next(struct http_server *server);

/* The answer. `request` is not to be used any more, but by `gone`. */
void http_reply(struct http_request *request, const struct http_reply *reply);

/* Of the request: a header, or an argument behind `?`. NULL: none. Valid as long as the request. */
const char *http_header(const struct http_request *request, const char *name);
const char *http_argument(const struct http_request *request, const char *name);

/* Visits all arguments behind `?`; libmicrohttpd's MHD_KeyValueIterator. */
void http_arguments(const struct http_request *request, MHD_KeyValueIterator visit, void *arg);

/* Whether who asked has gone away meanwhile. */
bool http_is_abandoned(const struct http_request *request);

/* Whether it came over a Unix socket, where the kernel tells who asks; then whether that is root or
 * the process's user. */
bool http_is_from_unix(const struct http_request *request);
bool http_is_trusted(const struct http_request *request);

/* What is due: time limits, answers to be sent. false: the server is damaged; close it. */
bool http_server_step(struct http_server *server);
uint64_t http_server_next_step(const struct http_server *server); /* CLOCK_MONOTONIC, ns */

#endif
