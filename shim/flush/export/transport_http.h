/* Sends one export over OTLP/HTTP or OTLP/gRPC, as a state machine: begin, then step until it is
 * done.
 *
 * Each transfer uses a multi handle of libcurl of its own, which is destroyed afterwards, so that
 * the exporter has no open descriptor between exports. Work inside the library happens under the
 * quiesce lock, in short steps that never sleep; the caller sleeps, by capture_api.wait.until().
 * Sockets are close-on-exec and above the low numbers that programs expect for their own files.
 * Redirects are not followed: the headers may carry credentials. libcurl is initialised only during
 * a transfer, and keeps no allocation longer. So if the program initialises libcurl for the first
 * time between two transfers, that works as without the profiler. If the program gives libcurl an
 * allocator (claimed_library.h), no libcurl function is called at all. A gRPC call is a POST over
 * HTTP/2 whose body is a wrapped message (grpc_message.h) and whose outcome is in the trailers
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
    TRANSPORT_CLAIMED,  /* nothing can be sent, because the program sets libcurl up itself */
    /* the quiesce lock is closed for ever: the caller must touch no data any more */
    TRANSPORT_CLOSED,
};

struct transport_response {
    bool connected;            /* the receiver responded at all */
    long status;               /* HTTP status; 0: none */
    uint64_t retry_after_nano; /* 0: the receiver stated no delay */
    int64_t rejected_profiles; /* number of profiles rejected in a partial success */
    char message[400];         /* text from the receiver, or from libcurl */
};

struct transport;

/* Opens the transport. Returns NULL without memory, or if libcurl cannot start (which is
 * logged). */
struct transport *transport_open(const struct capture_api *api);
/* Returns the function by which an object of the program claims libcurl; NULL if the last check
 * found no such object. */
const char *transport_claim(const struct transport *transport);

/* Closes the transport; a transfer must not be under way. */
void transport_close(struct transport *transport);

/* Starts sending; with gRPC the bytes are a wrapped message. The caller keeps `export`, which must
 * live until the transfer has ended. */
enum transport_state transport_begin(struct transport *transport, const struct export *export);

/* Works as far as possible without waiting. Any state but TRANSPORT_BUSY means that the transfer
 * has ended and `*response` is filled in. */
enum transport_state transport_step(struct transport *transport,
                                    struct transport_response *response);

/* Reads the files that transfers will need if the program changes its root next. */
void transport_prepare(struct transport *transport);

/* Cancels a transfer under way. */
void transport_cancel(struct transport *transport);

#endif
