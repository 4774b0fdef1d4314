#include "serve.h"

#include "clock.h"
#include "control/memory_room.h"
#include "http_library.h"
#include "process_tree.h"
#include "routes.h"
#include "serve_state.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

/* Sets how often clients with an open window are checked for having disconnected, in ns. */
enum { CLIENT_CHECK_NANO = 1000 * 1000 * 1000 };
/* Bounds how long the end of the process waits for clients to read their profiles. A client on the
 * same machine reads 64 MiB in some 30 ms. */
static const uint64_t last_replies_nano = UINT64_C(200) * NANO_PER_MILLI;

/* --- opening --- */

static void forget_request(void *arg, struct http_request *request) {
    struct window *const window = request->owner_data;
    (void)arg;
    if (window)
        window->request = NULL;
}

static void report_open(const struct serve *serve, bool was_open) {
    log_write(serve->of.api->log, was_open ? LOG_INFO : LOG_DEBUG, "listening on %s",
              serve->socket.where);
}

/* Begins to listen. Returns false if that fails; the reason is logged once. A process that has
 * listened before tries again at each export, whatever the error is. */
static bool serve_begin(struct serve *serve) {
    const bool was_waiting = serve->waits;
    const int error = listen_socket_open(&serve->socket, &serve->address);
    const bool is_taken = error == -LISTEN_TAKEN || error == -EADDRINUSE;
    serve->waits = error && (is_taken || serve->sums.are_open);
    if (error && !was_waiting) {
        /* related processes inherit one OTEL_PROFILER_LISTEN: all but one find the address taken,
         * which is no fault */
        const bool is_expected = is_taken && process_tree_has_relative();
        log_write(serve->of.api->log, is_expected ? LOG_DEBUG : LOG_WARN,
                  "OTEL_PROFILER_LISTEN: cannot listen on %s: %s; the process serves no requests",
                  serve->of.api->config->listen, listen_socket_problem(error));
    }
    if (error)
        return false;
    serve->server = http_server_open(serve->of.api, &serve->socket, forget_request, serve);
    if (!serve->server) {
        log_warn(serve->of.api->log,
                 "OTEL_PROFILER_LISTEN: %s is not there, or the program uses it itself; the "
                 "process serves no requests",
                 HTTP_LIBRARY_NAME);
        listen_socket_close(&serve->socket);
        return false;
    }
    /* without the exports made while another process held the address */
    cumulative_sums_open(&serve->sums, serve->of.api->config->types,
                         serve->taken_unix ? serve->taken_unix : serve->of.api->start_unix_nano);
    return true;
}

struct serve *serve_open(const struct serve_of *of) {
    struct serve *const serve = calloc(1, sizeof *serve);
    if (!serve)
        return NULL;
    serve->of = *of;
    const char *const problem =
        listen_address_parse(of->api->config->listen, getpid(), &serve->address);
    if (problem)
        log_warn(of->api->log, "OTEL_PROFILER_LISTEN: %s %s; the process serves no requests",
                 of->api->config->listen, problem);
    const struct sockaddr_in *const inet =
        (const void *)&serve->address.inet; /* sockaddr_in6 has its port at the same offset */
    const bool was_open = !serve->address.is_unix && inet->sin_port == 0;
    if (!problem && serve_begin(serve))
        report_open(serve, was_open);
    if (serve->server || serve->waits)
        return serve;
    free(serve);
    return NULL;
}

bool serve_is_listening(const struct serve *serve) {
    return serve->server != NULL;
}

bool serve_sums(const struct serve *serve) {
    return serve->sums.are_open;
}

/* --- closing --- */

static void end_window(struct serve *serve, struct window *window) {
    if (window->request) {
        window->request->owner_data = NULL;
        reply_to_window(serve, window);
    }
    if (window->recording)
        control_record_end(serve->of.control, window->recording);
    window_close(window);
}

static void end_all_windows(struct serve *serve) {
    while (serve->windows) {
        struct window *const window = serve->windows;
        serve->windows = window->next;
        end_window(serve, window);
    }
}

/* Replies to all open windows first, as far as this is possible without blocking. */
void serve_pause(struct serve *serve) {
    end_all_windows(serve);
    if (serve->server)
        (void)http_server_step(serve->server);
    http_server_close(serve->server);
    serve->server = NULL;
    listen_socket_close(&serve->socket);
}

void serve_resume(struct serve *serve) {
    (void)serve_begin(serve);
}

bool serve_try_again(struct serve *serve) {
    /* Gives the socket up if clients cannot find it: its file may have been removed, or replaced by
     * another process if the file system renames without flags (listen_socket.c). */
    if (serve->server && listen_socket_is_lost(&serve->socket))
        serve_pause(serve);
    else if (serve->server || !serve->waits)
        return false;
    if (!serve_begin(serve))
        return false;
    report_open(serve, false);
    return true;
}

/* Replies to all open windows with the samples that they have, because the last export has been
 * made. Waits a bounded time for clients whose sockets do not take a reply at once. */
static void send_last_replies(struct serve *serve) {
    const uint64_t until = monotonic_nano() + last_replies_nano;
    for (struct window *it = serve->windows; it; it = it->next)
        window_cut(it, serve->taken_unix);
    end_all_windows(serve);
    while (http_server_step(serve->server) && http_server_reply_bytes(serve->server) &&
           monotonic_nano() < until)
        (void)poll(NULL, 0, 1);
}

void serve_close(struct serve *serve) {
    if (!serve)
        return;
    serve->is_ending = true;
    if (serve->server && serve->windows)
        send_last_replies(serve);
    serve_pause(serve);
    cumulative_sums_close(&serve->sums);
    free(serve);
}

/* --- exports --- */

uint64_t serve_next_export(const struct serve *serve) {
    uint64_t next = UINT64_MAX;
    for (const struct window *it = serve->windows; it; it = it->next)
        if (window_wants(it) < next)
            next = window_wants(it);
    return next;
}

bool serve_records(const struct serve *serve) {
    const struct window *it = serve->windows;
    while (it && it->form != WINDOW_OTLP)
        it = it->next;
    return it != NULL;
}

/* Bounds the memory of the windows: refuses the newest windows first. */
static void bound_windows(struct serve *serve) {
    uint64_t bytes = serve->server ? http_server_reply_bytes(serve->server) : 0;
    for (const struct window *it = serve->windows; it; it = it->next)
        bytes += window_bytes(it);
    const uint64_t most = bytes ? windows_most_bytes(bytes, cumulative_sums_bytes(&serve->sums),
                                                     memory_room_of_program())
                                : 0;
    for (struct window *it = serve->windows; it && bytes > most; it = it->next) {
        bytes -= window_bytes(it);
        window_refuse(it);
    }
}

void serve_refuse(struct serve *serve) {
    for (struct window *it = serve->windows; it; it = it->next)
        if (window_wants(it) <= monotonic_nano())
            window_refuse(it);
}

void serve_take(struct serve *serve, const struct otlp_writer *writer,
                const struct encoded *encoded) {
    if (!serve->sums.are_open) /* the process has never listened */
        return;
    const bool first = !serve->in_export;
    serve->in_export = true;
    cumulative_sums_add(&serve->sums, writer, first);
    for (struct window *it = serve->windows; it; it = it->next) {
        window_take(it, writer, first);
        window_take_bytes(it, encoded->bytes, encoded->size);
    }
    bound_windows(serve);
}

void serve_end_export(struct serve *serve, uint64_t now, uint64_t now_unix,
                      const uint64_t sampled_nano[static SAMPLE_KINDS]) {
    serve->in_export = false;
    serve->taken_unix = now_unix;
    for (struct window *it = serve->windows; it; it = it->next)
        window_end_export(it, now, now_unix, sampled_nano);
}

/* --- requests --- */

static void end_windows(struct serve *serve) {
    struct window **at = &serve->windows;
    while (*at) {
        struct window *const window = *at;
        /* Also ends the window of a client that has disconnected, because the reply closes the
         * connection. */
        if (window->request && window->state != WINDOW_DONE &&
            !http_is_abandoned(window->request)) {
            at = &window->next;
            continue;
        }
        *at = window->next;
        end_window(serve, window);
    }
}

void serve_step(struct serve *serve) {
    if (!serve->server)
        return;
    end_windows(serve);
    for (struct http_request *request; (request = http_server_next(serve->server));)
        route_request(serve, request);
    if (http_server_step(serve->server))
        return;
    log_warn(serve->of.api->log,
             "%s reported that it is damaged; the process serves no more requests",
             HTTP_LIBRARY_NAME);
    serve_pause(serve);
}

uint64_t serve_next_step(const struct serve *serve) {
    if (!serve->server)
        return UINT64_MAX;
    const uint64_t next = http_server_next_step(serve->server);
    const uint64_t client_check =
        serve->windows ? monotonic_nano() + CLIENT_CHECK_NANO : UINT64_MAX;
    return next < client_check ? next : client_check;
}
