/* Sends one export over OTLP/HTTP or OTLP/gRPC, as a state machine: begin, then step until it is
 * done.
 *
 * Each transfer has its own multi handle of libcurl, which is destroyed afterwards, so that the
 * exporter has no open descriptor between exports. Work inside the library happens under the
 * quiesce lock, in short steps that never sleep; the caller sleeps, by capture_api.wait.until().
 * Sockets are close-on-exec and above the low numbers that programs expect for their own files.
 * Redirects are not followed: the headers may carry credentials. libcurl is initialised only during
 * a transfer, and keeps no allocation longer. So if the program initialises libcurl for the first
 * time between two transfers, that works as without the profiler. If the program claims libcurl
 * (claimed_library.h), no libcurl function is called at all. A gRPC call is a POST over HTTP/2
 * whose body is a wrapped message (grpc_message.h) and whose outcome is in the trailers
 * (grpc_response.h). Context: flush.
 */
#ifndef OTELPROF_TRANSPORT_HTTP_H
#define OTELPROF_TRANSPORT_HTTP_H

#include "harvest.h"
#include "queue.h"

enum transport_state {
    TRANSPORT_BUSY,
    TRANSPORT_ACCEPTED, /* the receiver reported success */
    TRANSPORT_RETRY,    /* not delivered, but may be later */
    TRANSPORT_REFUSED,  /* not delivered, and never will be */
    TRANSPORT_CLAIMED,  /* nothing can be sent, because the program claims libcurl */
    /* the profiler ends: the quiesce lock is closed for ever, or the transport has called
     * give_up() */
    TRANSPORT_CLOSED,
};

struct transport_response {
    bool connected;            /* the receiver responded at all */
    long status;               /* HTTP status; 0: none */
    uint64_t retry_after_nano; /* 0: the receiver stated no delay */
    int64_t rejected_profiles; /* number of profiles rejected in a partial success, as sent */
    char message[400];         /* text from the receiver, from libcurl, or our own; "": none */
};

struct transport;

/* Opens the transport. Returns NULL without memory, if the quiesce lock is closed, or if libcurl
 * cannot start (which is logged). */
struct transport *transport_open(const struct capture_api *api);
/* Returns the name of the function by which an object of the program claims libcurl
 * (claimed_library.h); NULL if the last check found no such object. */
const char *transport_claim(const struct transport *transport);

/* Frees the transport, which may be NULL. A transfer under way is not ended: its libcurl handles
 * stay allocated. */
void transport_close(struct transport *transport);

/* Starts sending, for at most `timeout_ms`; with gRPC the bytes are a wrapped message. The caller
 * keeps `export`, which must live until the transfer has ended. Returns TRANSPORT_BUSY if a
 * transfer is under way now, otherwise TRANSPORT_RETRY, TRANSPORT_CLAIMED or TRANSPORT_CLOSED. */
enum transport_state transport_begin(struct transport *transport, const struct export *export,
                                     uint64_t timeout_ms);

/* Continues the transfer as far as possible without waiting. TRANSPORT_BUSY: the transfer
 * continues. TRANSPORT_CLOSED: nothing was done. Any other state: the transfer has ended, and
 * `*response` is filled in. */
enum transport_state transport_step(struct transport *transport,
                                    struct transport_response *response);

/* Reads the files that transfers will need if the program changes its root next. Does nothing after
 * such a change, or if the program claims libcurl. */
void transport_prepare(struct transport *transport);

/* Cancels the transfer under way, if there is one. */
void transport_cancel(struct transport *transport);

#endif
