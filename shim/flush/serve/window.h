/* Who waits for an answer that exports make: the next one, or those of a time.
 *
 *   BEGINS ──an export ends: the time begins──► TAKES ──its time is over, and an export──► DONE
 *   NEXT ──an export──► DONE
 *
 * The export with which a time begins is not of it, but says what is there at that moment: the sum
 * of a window takes it for the begin of a difference.
 *
 * Context of all: flush.
 */
#ifndef OTELPROF_WINDOW_H
#define OTELPROF_WINDOW_H

#include "http_server.h"
#include "pprof_sum.h"

enum window_state { WINDOW_NEXT, WINDOW_BEGINS, WINDOW_TAKES, WINDOW_DONE };
enum window_form { WINDOW_PPROF, WINDOW_TEXT, WINDOW_OTLP, WINDOW_FLUSH };

enum { WINDOW_MOST_BYTES = 64 << 20 }; /* of exports as they are */

struct window {
    struct window *next;
    struct http_request *request;
    enum window_state state;
    enum window_form form;
    enum pprof_kind kind;
    bool full;           /* WINDOW_TEXT: debug=2 */
    bool refused;        /* it is DONE, and there was no memory for it */
    uint64_t length;     /* nanoseconds; 0: the next export alone */
    uint64_t begin_unix; /* of what is in it */
    uint64_t begin;      /* the same moment of CLOCK_MONOTONIC */
    uint64_t end_unix;
    uint32_t recording;    /* control.h; 0: none */
    struct pprof_sum *sum; /* NULL: none of its own */
    struct wire exports;   /* WINDOW_OTLP: each behind its length, in 4 bytes of network order */
};

/* One with a state; `length` as above. NULL: no memory. */
struct window *window_open(struct http_request *request, enum window_form form, uint64_t length);
void window_close(struct window *window);

/* What it takes of an export under way. `decoded`: NULL: there was no memory for it. `first` of it.
 */
void window_take(struct window *window, const otlp_request *decoded, bool first);
void window_take_bytes(struct window *window, const uint8_t *request, size_t size);

/* An export has ended, with samples up to that moment. */
void window_taken(struct window *window, uint64_t now, uint64_t now_unix);

/* There is no memory for it. */
void window_refuse(struct window *window);

/* Of memory, at present. */
size_t window_bytes(const struct window *window);

/* When it wants an export (CLOCK_MONOTONIC, ns): 0: at once; UINT64_MAX: not any more. */
uint64_t window_wants(const struct window *window);

#endif
