/* Sends one export over OTLP/HTTP or OTLP/gRPC, as a state machine: begin, then step until it is
 * done.
 *
 * It uses libcurl's multi interface, created for one transfer and destroyed after it, so that the
 * exporter has no open descriptor between exports. Each burst of work inside the library happens
 * under the quiesce lock and never sleeps; the caller sleeps, through capture_api.wait.until().
 * Sockets are close-on-exec and above the low numbers that programs expect for their own files.
 * Redirects are not followed: the headers may carry credentials. libcurl is initialised for the
 * time of a transfer only and keeps no allocation longer: between two transfers the program's own
 * first initialisation works as it does without the profiler. If the program gives libcurl an
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
    TRANSPORT_RETRY,    /* not delivered; may be later */
    TRANSPORT_REFUSED,  /* not delivered; never will be */
    TRANSPORT_CLAIMED,  /* nothing can be sent: the program sets libcurl up itself */
    TRANSPORT_CLOSED,   /* the quiesce lock is closed for good: touch nothing any more */
};

struct transport_response {
    bool connected;            /* the receiver responded at all */
    long status;               /* HTTP, 0 if none */
    uint64_t retry_after_nano; /* 0 = not stated */
    int64_t rejected_profiles; /* partial success */
    char message[400];         /* from the receiver, or from libcurl */
};

struct transport;

/* Returns NULL without memory, or if libcurl cannot start (which is logged). */
struct transport *transport_open(const struct capture_api *api);
/* Returns the function by which an object of the program claims libcurl; NULL if the last check
 * found none. */
const char *transport_claim(const struct transport *transport);

/* Must not be called while a transfer is under way. */
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
