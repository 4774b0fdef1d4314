/* Takes HTTP requests at a listening socket and sends their replies. libmicrohttpd (MHD) runs
 * without a thread of its own, during the helper's waits. A reply may be given at any later time:
 *
 *   MHD receives a request ──► suspends its connection ──► http_server_next() hands it over
 *                                                                     │
 *   MHD sends the reply ◄── resumes its connection ◄────── http_reply(), any time later
 *
 * Limits: 32 connections, 16 KiB of memory each, 4 KiB of a request's body (the rest is read and
 * discarded), 10 s to receive a request, 60 s to send a reply, and one request per connection.
 * Connections beyond a limit are refused or closed. A reply that the client does not read is freed
 * with its connection.
 *
 * If the library detects corruption of its state (its "panic", which would abort the process), the
 * server ends, and the program continues.
 *
 * Context of all: flush.
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
    const char *body; /* NUL-terminated */
    size_t body_size;
    bool is_cut;      /* the body exceeds the limit: `body` lacks a part of it */
    void *owner_data; /* set by the caller, which gets it back in `gone` */
    struct http_connection *connection;
};

struct http_reply {
    unsigned status;      /* HTTP status, for example 200 */
    const char *type;     /* Content-Type; static */
    const char *file;     /* suggested file name (Content-Disposition), or NULL; static */
    const char *allow;    /* value of the Allow header, or NULL; static */
    const char *location; /* value of the Location header, or NULL; static */
    bool is_unsized;      /* for HEAD: the length of GET's body is unknown */
    uint8_t *bytes;       /* malloc'ed; the server takes ownership; not sent for HEAD */
    size_t size;
};

/* Opens a server. `gone` is called when a request that was handed over ends without a reply, for
 * example because the client has left; it must not reply. The server takes ownership of the
 * descriptor in `at`, even on failure. Returns NULL if the library is missing or fails, without
 * memory, or if the quiesce lock is closed. */
typedef void http_gone(void *arg, struct http_request *request);
struct http_server *http_server_open(const struct capture_api *api, struct listen_socket *at,
                                     http_gone *gone, void *arg);

/* Closes all connections and frees the server. `server` may be NULL. */
void http_server_close(struct http_server *server);

/* Returns the oldest request that has not been handed over yet, or NULL. It stays valid until
 * http_reply(), or until http_server_step() or http_server_close() calls `gone` for it. */
struct http_request *http_server_next(struct http_server *server);

/* Gives the reply. Afterwards the caller must not use `request`, and `gone` is not called for
 * it. */
void http_reply(struct http_request *request, const struct http_reply *reply);

/* Returns the bytes of the replies that have not been sent yet. */
uint64_t http_server_reply_bytes(const struct http_server *server);

/* Return a header, or an argument of the query string; NULL: there is none. The text is valid as
 * long as the request. */
const char *http_header(const struct http_request *request, const char *name);
const char *http_argument(const struct http_request *request, const char *name);

/* Returns true if the request has several headers of that name. */
bool http_header_repeats(const struct http_request *request, const char *name);

/* Visits all arguments of the query string. `visit` is libmicrohttpd's MHD_KeyValueIterator. */
void http_arguments(const struct http_request *request, MHD_KeyValueIterator visit, void *arg);

/* Returns true if the client has closed its connection. */
bool http_is_abandoned(const struct http_request *request);

/* http_is_from_unix() returns true for a Unix socket, where the kernel reports the client's user;
 * http_is_trusted() returns true if that is root or the process's user. */
bool http_is_from_unix(const struct http_request *request);
bool http_is_trusted(const struct http_request *request);

/* Receives requests, enforces time limits and sends replies. Returns false if the server is
 * damaged: close it. Does nothing if the quiesce lock is closed. */
bool http_server_step(struct http_server *server);
/* Returns when the next step is due (CLOCK_MONOTONIC, ns); 0: now; UINT64_MAX: never. */
uint64_t http_server_next_step(const struct http_server *server);

#endif
