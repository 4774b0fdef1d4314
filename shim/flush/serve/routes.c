#include "routes.h"

#include "access.h"
#include "clock.h"
#include "config_values.h"
#include "control/memory_room.h"
#include "facts.h"
#include "profile_kind.h"
#include "thread_text.h"
#include "written_text.h"

#include <microhttpd.h>
#include <stdio.h>
#include <string.h>

enum { MOST_SECONDS = 3600, DEFAULT_SECONDS = 30, MOST_STATUS_PER_SECOND = 50 };

enum route {
#define ROUTE(constant, method, path, right, help) constant,
#include "routes.def"
#undef ROUTE
    ROUTE_PPROF,    /* one of the profiles of pprof_kinds.def */
    ROUTE_NO_SLASH, /* the folder's name without its last `/`, as people type it */
    ROUTE_NONE
};

static const struct {
    const char *method;
    const char *path;
    enum access_right right;
} routes[] = {
#define ROUTE(constant, method, path, right, help) {method, path, right},
#include "routes.def"
#undef ROUTE
};

static const char pprof_folder[] = "/debug/pprof/";
static const char pprof_no_slash[] = "/debug/pprof";

/* --- short replies --- */

static const char plain_text[] = "text/plain; charset=utf-8";

/* Replies with the written bytes, and empties `written`. Replies 503 if there was no memory for
 * them. */
static void reply_with(struct http_request *request, struct http_reply reply,
                       struct wire *written) {
    reply.bytes = wire_take(written, &reply.size);
    if (!reply.bytes)
        reply = (struct http_reply){.status = MHD_HTTP_SERVICE_UNAVAILABLE, .type = reply.type};
    http_reply(request, &reply);
}

/* Replies with the sentence and a newline. */
static void reply_text(struct http_request *request, unsigned status, const char *sentence) {
    const struct http_reply reply = {.status = status, .type = plain_text};
    struct wire written = {.bytes = NULL};
    text_add(&written, "%s\n", sentence);
    reply_with(request, reply, &written);
}

static void reply_written(struct http_request *request, const char *type, struct wire *written) {
    const struct http_reply reply = {.status = MHD_HTTP_OK, .type = type};
    reply_with(request, reply, written);
}

/* --- the route of a request --- */

static bool is_head(const struct http_request *request) {
    return strcmp(request->method, "HEAD") == 0;
}

/* Returns ROUTE_NONE if there is no such path (*method is NULL) or if the path has only another
 * method (*method is that method). */
static enum route find_route(const struct http_request *request, const char **method) {
    const char *const path = strcmp(request->path, "/") == 0 ? pprof_folder : request->path;
    enum route route = ROUTE_PPROF;
    *method = NULL;
    for (unsigned i = 0; i < sizeof routes / sizeof *routes; i++)
        if (strcmp(routes[i].path, path) == 0) {
            route = i;
            *method = routes[i].method;
        }
    if (!*method && strncmp(path, pprof_folder, sizeof pprof_folder - 1) == 0 &&
        pprof_kind_named(path + sizeof pprof_folder - 1) != PPROF_KINDS)
        *method = "GET";
    if (strcmp(path, pprof_no_slash) == 0) {
        *method = "GET";
        route = ROUTE_NO_SLASH;
    }
    /* every path that has GET also has HEAD */
    const bool has_method = *method && (strcmp(*method, request->method) == 0 ||
                                        (is_head(request) && strcmp(*method, "GET") == 0));
    return has_method ? route : ROUTE_NONE;
}

/* Parses `seconds` into nanoseconds; without that argument uses `otherwise` (in seconds). Returns
 * false after a reply if it is not a valid number. */
static bool parse_length(struct http_request *request, uint64_t otherwise, uint64_t *length) {
    const char *const seconds = http_argument(request, "seconds");
    uint64_t number = otherwise;
    if (seconds && !parse_number(seconds, 1, MOST_SECONDS, &number)) {
        reply_text(request, MHD_HTTP_BAD_REQUEST,
                   "`seconds` is no whole number from 1 to 3600; the request is refused.");
        return false;
    }
    *length = number * NANO_PER_SECOND;
    return true;
}

static const char octets[] = "application/octet-stream";
static const char pprof_file[] = "attachment; filename=\"profile.pb.gz\"";

static unsigned count_long_windows(const struct serve *serve) {
    unsigned count = 0;
    for (const struct window *it = serve->windows; it; it = it->next)
        count += it->length != 0;
    return count;
}

/* Opens a window for the request. Returns NULL if a reply has been sent already. Nothing is
 * recorded or exported for HEAD: it gets the headers of GET's reply. */
static struct window *open_window(struct serve *serve, struct http_request *request,
                                  enum window_form form, uint64_t length) {
    if (is_head(request)) {
        const struct http_reply reply = {.status = MHD_HTTP_OK,
                                         .type = form == WINDOW_TEXT ? plain_text : octets,
                                         .file = form == WINDOW_PPROF ? pprof_file : NULL,
                                         .is_unsized = true};
        http_reply(request, &reply);
        return NULL;
    }
    if (length && count_long_windows(serve) >= WINDOWS_MOST_LONG) {
        reply_text(request, MHD_HTTP_SERVICE_UNAVAILABLE,
                   "There are 16 profiles over a time already; try again.");
        return NULL;
    }
    struct window *const window = window_open(request, form, length);
    if (!window) {
        reply_text(request, MHD_HTTP_SERVICE_UNAVAILABLE, "There is no memory for the response.");
        return NULL;
    }
    request->owner_data = window;
    window->next = serve->windows;
    serve->windows = window;
    return window;
}

static void begin_pprof(struct serve *serve, struct http_request *request, enum pprof_kind kind) {
    const struct pprof_facts *const facts = pprof_facts(kind);
    const char *const debug = http_argument(request, "debug");
    const bool is_text = debug && strcmp(debug, "0") != 0;
    uint64_t length;
    if (!(facts->profiles & serve->of.api->config->types)) {
        char sentence[256];
        snprintf(sentence, sizeof sentence,
                 "`%s` is not profiled: OTEL_PROFILER_TYPES does not name what it needs.",
                 facts->name);
        reply_text(request, MHD_HTTP_NOT_FOUND, sentence);
        return;
    }
    if (!parse_length(request, facts->begins == AT_REQUEST ? DEFAULT_SECONDS : 0, &length))
        return;
    if (length && is_text && facts->begins != AT_REQUEST) {
        reply_text(request, MHD_HTTP_BAD_REQUEST,
                   "`debug` and `seconds` exclude each other: there is no text of a difference.");
        return;
    }
    const bool text = is_text && facts->begins == NOW;
    struct window *const window =
        open_window(serve, request, text ? WINDOW_TEXT : WINDOW_PPROF, length);
    if (!window)
        return;
    window->kind = kind;
    window->full = text && strcmp(debug, "2") == 0;
    if (length)
        window->sum = pprof_sum_open_difference(kind);
    else if (facts->begins == NOW)
        window->sum = pprof_sum_open(kind);
}

/* --- settings for the duration of one profile --- */

struct lines {
    char text[1024];
    size_t size;
    bool is_cut; /* the lines do not fit into `text` */
};

static enum MHD_Result add_setting_line(void *arg, enum MHD_ValueKind kind, const char *name,
                                        const char *value) {
    struct lines *const lines = arg;
    (void)kind;
    if (strncmp(name, "OTEL_", 5) != 0)
        return MHD_YES;
    const int added = snprintf(lines->text + lines->size, sizeof lines->text - lines->size,
                               "%s=%s\n", name, value ? value : "");
    lines->is_cut = added < 0 || (size_t)added >= sizeof lines->text - lines->size;
    if (lines->is_cut)
        return MHD_NO;
    lines->size += (size_t)added;
    return MHD_YES;
}

/* Begins a recording for the request, unless its query has no settings or the method is HEAD: then
 * `*recording` stays as it is. Returns false if the settings are refused; the reply has been sent
 * then. */
static bool begin_recording(struct serve *serve, struct http_request *request,
                            uint32_t *recording) {
    char problem[CONTROL_PROBLEM];
    unsigned status;
    struct lines lines = {.size = 0};
    http_arguments(request, add_setting_line, &lines);
    if (lines.size == 0 && !lines.is_cut)
        return true;
    const char *const refusal = access_refusal(serve->of.api->config, request, CHANGE, &status);
    if (refusal) {
        reply_text(request, status, refusal);
        return false;
    }
    if (lines.is_cut) {
        reply_text(request, MHD_HTTP_URI_TOO_LONG,
                   "The settings of a query have at most 1 KiB; the request is refused.");
        return false;
    }
    bool is_right;
    if (is_head(request)) {
        is_right = control_check(serve->of.control, lines.text, lines.size, problem);
    } else {
        *recording = control_record(serve->of.control, lines.text, lines.size, problem);
        is_right = *recording != 0;
    }
    if (!is_right)
        reply_text(request, MHD_HTTP_BAD_REQUEST, problem);
    return is_right;
}

static void begin_profile(struct serve *serve, struct http_request *request, enum route route) {
    uint32_t recording = 0;
    uint64_t length;
    if (!begin_recording(serve, request, &recording))
        return;
    if (route != ROUTE_OTLP)
        begin_pprof(serve, request, pprof_kind_named(request->path + sizeof pprof_folder - 1));
    else if (parse_length(request, 0, &length))
        (void)open_window(serve, request, WINDOW_OTLP, length);
    const struct window *const window = serve->windows;
    if (window && window->request == request)
        serve->windows->recording = recording;
    else if (recording)
        control_record_end(serve->of.control, recording);
}

/* --- the other routes --- */

static void write_setting_line(void *arg, const char *name, const char *value) {
    text_add(arg, "%s=", name);
    text_add_shown(arg, value);
    text_add(arg, "\n");
}

static void reply_to_change(struct serve *serve, struct http_request *request) {
    char problem[CONTROL_PROBLEM];
    struct wire written = {.bytes = NULL};
    if (!control_set(serve->of.control, request->body, request->body_size, problem)) {
        reply_text(request, MHD_HTTP_BAD_REQUEST, problem);
        return;
    }
    control_list(serve->of.control, write_setting_line, &written);
    const char *const why_off = control_why_off(serve->of.control);
    if (why_off)
        text_add(&written, "# OTEL_PROFILER_START=off: %s\n", why_off);
    reply_written(request, plain_text, &written);
}

/* Leads to the page, as Go's server does: links of the page are relative to the folder. */
static void reply_redirect(struct http_request *request) {
    struct wire written = {.bytes = NULL};
    const struct http_reply reply = {
        .status = MHD_HTTP_MOVED_PERMANENTLY, .type = plain_text, .location = pprof_folder};
    text_add(&written, "The page is %s\n", pprof_folder);
    reply_with(request, reply, &written);
}

static void reply_none(struct http_request *request, const char *method) {
    struct wire written = {.bytes = NULL};
    if (!method) {
        reply_text(request, MHD_HTTP_NOT_FOUND, "There is no such page; /debug/pprof/ lists all.");
        return;
    }
    const char *const methods = strcmp(method, "GET") == 0 ? "GET, HEAD" : method;
    const struct http_reply reply = {
        .status = MHD_HTTP_METHOD_NOT_ALLOWED, .type = plain_text, .allow = methods};
    text_add(&written, "This path has %s; the request is refused.\n", methods);
    reply_with(request, reply, &written);
}

/* Returns true if the request may be served; false if a port has used up its requests of this
 * second. The bound is needed because the helper writes the figures of the process for each
 * request, and a port is open to all users of the machine. */
static bool has_status_left(struct serve *serve, const struct http_request *request) {
    const uint64_t second = monotonic_nano() / NANO_PER_SECOND;
    if (http_is_from_unix(request))
        return true;
    if (serve->status_second != second) {
        serve->status_second = second;
        serve->status_replies = 0;
    }
    return serve->status_replies++ < MOST_STATUS_PER_SECOND;
}

static void reply_to_route(struct serve *serve, struct http_request *request, enum route route) {
    struct wire written = {.bytes = NULL};
    if ((route == ROUTE_STATUS || route == ROUTE_METRICS) && !has_status_left(serve, request)) {
        reply_text(request, MHD_HTTP_TOO_MANY_REQUESTS,
                   "A port has at most 50 of these responses a second; try again.");
        return;
    }
    switch (route) {
    case ROUTE_INDEX:
        write_index(serve, &written);
        reply_written(request, "text/html; charset=utf-8", &written);
        return;
    case ROUTE_STATUS:
        write_status(serve, &written);
        reply_written(request, "application/json", &written);
        return;
    case ROUTE_METRICS:
        write_metrics(serve, &written);
        reply_written(request, "text/plain; version=0.0.4; charset=utf-8", &written);
        return;
    case ROUTE_SYMBOL: /* no symbol is looked up, because profiles have names already */
        reply_text(request, MHD_HTTP_OK, "num_symbols: 0");
        return;
    case ROUTE_NO_SLASH:
        reply_redirect(request);
        return;
    case ROUTE_CONTROL:
        reply_to_change(serve, request);
        return;
    case ROUTE_FLUSH:
        (void)open_window(serve, request, WINDOW_FLUSH, 0);
        return;
    default:
        begin_profile(serve, request, route);
    }
}

void route_request(struct serve *serve, struct http_request *request) {
    const char *method;
    unsigned status;
    const enum route route = find_route(request, &method);
    const enum access_right right = route < ROUTE_PPROF ? routes[route].right : READ;
    const char *const refusal = access_refusal(serve->of.api->config, request, right, &status);
    if (refusal)
        reply_text(request, status, refusal);
    else if (route == ROUTE_NONE)
        reply_none(request, method);
    else if (request->is_cut && route != ROUTE_SYMBOL)
        reply_text(request, MHD_HTTP_CONTENT_TOO_LARGE, "A request's body has at most 4 KiB.");
    else
        reply_to_route(serve, request, route);
}

/* --- replies made from exports --- */

static struct pprof_times window_times(const struct serve *serve, const struct window *window) {
    struct pprof_times times = {.unix_nano = window->end_unix};
    if (window->length)
        times = (struct pprof_times){.unix_nano = window->begin_unix,
                                     .duration_nano = window_duration(window)};
    else if (pprof_facts(window->kind)->begins == AT_START)
        times.since_unix_nano = serve->sums.since_unix;
    return times;
}

static void reply_pprof(struct serve *serve, struct window *window) {
    struct pprof_sum *const sum = window->sum || window->length
                                      ? window->sum
                                      : serve->sums.of[pprof_kind_summed(window->kind)];
    const struct pprof_times times = window_times(serve, window);
    struct http_reply reply = {.status = MHD_HTTP_OK, .type = octets, .file = pprof_file};
    if (sum)
        reply.bytes = pprof_sum_encode(sum, window->kind, &times, &reply.size);
    if (reply.bytes)
        http_reply(window->request, &reply);
    else
        reply_text(window->request, MHD_HTTP_SERVICE_UNAVAILABLE,
                   "There is no memory for the response.");
}

/* Returns true if there is memory for another reply: slow clients may leave replies unread until
 * all the memory that replies may take is in use. */
static bool has_room_for_reply(const struct serve *serve) {
    const uint64_t unsent = serve->server ? http_server_reply_bytes(serve->server) : 0;
    return unsent == 0 || unsent < windows_most_bytes(unsent, cumulative_sums_bytes(&serve->sums),
                                                      memory_room_of_program());
}

void reply_to_window(struct serve *serve, struct window *window) {
    struct wire written = {.bytes = NULL};
    if (!window->refused && window->form != WINDOW_FLUSH && !has_room_for_reply(serve))
        window_refuse(window);
    if (window->refused || window->state != WINDOW_DONE) {
        reply_text(window->request, MHD_HTTP_SERVICE_UNAVAILABLE,
                   window->refused    ? "There is no memory for the response."
                   : serve->is_ending ? "The process is ending; nothing was recorded."
                                      : "The process cannot respond now; try again.");
        return;
    }
    switch (window->form) {
    case WINDOW_PPROF:
        reply_pprof(serve, window);
        return;
    case WINDOW_OTLP:
        if (window->exports.failed)
            reply_text(window->request, MHD_HTTP_SERVICE_UNAVAILABLE,
                       "The exports are larger than 64 MiB, or than there is memory.");
        else
            reply_written(window->request, octets, &window->exports);
        return;
    case WINDOW_TEXT:
        write_threads(window->sum, window->full, &written);
        reply_written(window->request, plain_text, &written);
        return;
    case WINDOW_FLUSH:
        reply_text(window->request, MHD_HTTP_OK, "An export was made.");
    }
}
