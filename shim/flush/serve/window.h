/* Implements windows. A window is a request that waits for exports: for the next export, or for the
 * exports of a period.
 *
 *   BEGINS ──an export: the period begins──► TAKES ──an export after the period──► DONE
 *   NEXT ────an export───────────────────────────────────────────────────────────► DONE
 *
 * If the process ends first, its last export ends the period.
 *
 * The export that begins a period is not part of it. It has the values at that moment, which the
 * window's sum uses as the start of a difference.
 *
 * Context of all: flush.
 */
#ifndef OTELPROF_WINDOW_H
#define OTELPROF_WINDOW_H

#include "encode/pprof_sum.h"
#include "http_server.h"

enum window_state { WINDOW_NEXT, WINDOW_BEGINS, WINDOW_TAKES, WINDOW_DONE };
enum window_form { WINDOW_PPROF, WINDOW_TEXT, WINDOW_OTLP, WINDOW_FLUSH };

enum {
    WINDOW_MOST_BYTES = 64 << 20, /* most bytes of raw exports of a window, and of all windows */
    /* largest number of windows that cover a period: half of the server's connections */
    WINDOWS_MOST_LONG = 16,
};

struct window {
    struct window *next;
    struct http_request *request;
    enum window_state state;
    enum window_form form;
    enum pprof_kind kind;
    bool full;           /* the text is for debug=2 (WINDOW_TEXT) */
    bool refused;        /* the window is DONE without a result, for lack of memory */
    uint64_t length;     /* nanoseconds; 0: the next export only */
    uint64_t begin_unix; /* begin of the period covered */
    uint64_t begin;      /* begin of the period by CLOCK_MONOTONIC */
    uint64_t end_unix;
    uint64_t sampled_nano; /* how long the kind was sampled in the period so far */
    uint32_t recording;    /* number of its recording (control.h); 0: none */
    struct pprof_sum *sum; /* NULL: the window has no sum of its own */
    struct wire exports; /* WINDOW_OTLP: each message after its length, 4 bytes in network order */
};

/* Opens a window. `length` is as in struct window. Returns NULL without memory. */
struct window *window_open(struct http_request *request, enum window_form form, uint64_t length);
void window_close(struct window *window);

/* Add a part of the current export: for pprof the listed form, otherwise the encoded form. `first`:
 * this is the first part of the export. */
void window_take(struct window *window, const struct otlp_writer *writer, bool first);
void window_take_bytes(struct window *window, const uint8_t *request, size_t size);

/* Ends an export, which covers samples up to `now` (CLOCK_MONOTONIC, ns), equal to `now_unix`.
 * `sampled_nano`: how long each kind was sampled in its interval. */
void window_end_export(struct window *window, uint64_t now, uint64_t now_unix,
                       const uint64_t sampled_nano[static SAMPLE_KINDS]);

/* Returns how long the period's profile was sampled: less than its length if sampling was off. At
 * least 1 ns, because a profile without a duration is taken for cumulative sums. */
uint64_t window_duration(const struct window *window);

/* Ends a window whose period is under way at the last export of an ending process: the window's
 * profile covers its samples up to `end_unix`. Other windows do not change. */
void window_cut(struct window *window, uint64_t end_unix);

/* Ends the window for lack of memory, and frees its exports and its sum. */
void window_refuse(struct window *window);

/* Returns the memory in use, in bytes. */
size_t window_bytes(const struct window *window);

/* Returns the bytes that all windows and replies may take together. They take `held` bytes now, the
 * sums since the start take `sums`, and limits leave `room` (memory_room.h). The result is at most
 * WINDOW_MOST_BYTES. If there is a limit, windows, replies and sums together may take a quarter of
 * `held` + `sums` + `room`; the rest is for exports and for the program. Beside large sums, windows
 * and replies may still take an eighth of the room, at most 4 MiB. */
uint64_t windows_most_bytes(uint64_t held, uint64_t sums, uint64_t room);

/* Returns when the window needs an export (CLOCK_MONOTONIC, ns). 0: now; UINT64_MAX: the window
 * needs no export. */
uint64_t window_wants(const struct window *window);

#endif
