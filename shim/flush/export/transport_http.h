/* One export over OTLP/HTTP or OTLP/gRPC, as a state machine: begin, then step until it is done.
 *
 * libcurl's multi interface, made for one transfer and destroyed with it, so that between exports
 * no descriptor of ours is open. Each burst of work inside the library happens under the quiesce
 * lock and never sleeps; sleeping is the caller's, through capture_api.wait(). Sockets are
 * close-on-exec and above the low numbers that programs expect for their own files. Redirects are
 * not followed: the headers may carry credentials. libcurl is initialised for the time of a
 * transfer only, and nothing that it has allocated is kept for longer: between two the program's
 * own first initialisation has the effect that it has without us. Where the program gives libcurl
 * an allocator (claimed_library.h) nothing of libcurl is called at all. A gRPC call is a POST over
 * HTTP/2 whose body is a wrapped message (grpc_message.h) and whose outcome stands in the trailers
 * (grpc_answer.h). Context: flush.
 */
#ifndef OTELPROF_TRANSPORT_HTTP_H
#define OTELPROF_TRANSPORT_HTTP_H

#include "harvest.h"
#include "queue.h"

enum transport_state {
    TRANSPORT_BUSY,
    TRANSPORT_ACCEPTED, /* answered with success */
    TRANSPORT_RETRY,    /* not delivered; may be later */
    TRANSPORT_REFUSED,  /* not delivered; never will be */
    TRANSPORT_CLAIMED,  /* not sent, nor will anything be: the program sets libcurl up by itself */
    TRANSPORT_CLOSED,   /* the quiesce lock is closed for good: touch nothing any more */
};

struct transport_answer {
    bool connected;            /* the receiver answered at all */
    long status;               /* HTTP, 0 if none */
    uint64_t retry_after_nano; /* 0 = not stated */
    int64_t rejected_profiles; /* partial success */
    char message[400];         /* the receiver's words, or libcurl's */
};

struct transport;

/* NULL: no memory, or libcurl cannot start (said in the log). */
struct transport *transport_open(const struct capture_api *api);
/* By which function an object of the program claims libcurl; NULL: by none, at the last look. */
const char *transport_claim(const struct transport *transport);

/* Only while no transfer is under way. */
void transport_close(struct transport *transport);

/* Starts sending; with gRPC the bytes are a wrapped message. `export` stays the caller's and must
 * live until the transfer has ended. */
enum transport_state transport_begin(struct transport *transport, const struct export *export);

/* Does what can be done without waiting. When it no longer says TRANSPORT_BUSY the transfer has
 * ended and `*answer` is filled in. */
enum transport_state transport_step(struct transport *transport, struct transport_answer *answer);

/* The program may change its root next: reads what transfers will need then. */
void transport_prepare(struct transport *transport);

/* Breaks off a transfer under way. */
void transport_cancel(struct transport *transport);

#endif
