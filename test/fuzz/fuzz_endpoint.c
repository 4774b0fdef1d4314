/* Fuzzes requests to the process's HTTP endpoint, as libmicrohttpd passes them on: every one gets
 * one reply. Without the right nothing is served and no setting changes; every refusal is one line.
 *
 * Input: a byte of flags for the configuration; then requests, each up to a byte 0xff: a byte of
 * flags, "METHOD PATH?QUERY", lines of headers up to an empty one, and the body.
 */
#include "../unit/fake_capture.h"
#include "budget.h"
#include "serve/routes.h"
#include "strict_json.h"

enum { MOST_REQUESTS = 4, MOST_PAIRS = 16, MOST_BODY = 4096, END_OF_REQUEST = 0xff };
enum config_flag { HAS_TOKEN = 1, MAY_CHANGE = 2, HAS_FEW_TYPES = 4 };
enum request_flag { FROM_UNIX = 1, IS_TRUSTED = 2, IS_ABANDONED = 4, IS_GONE = 8 };

#define TOKEN "s3cret"

struct pairs {
    char *name[MOST_PAIRS];
    char *value[MOST_PAIRS]; /* NULL: an argument without `=` */
    unsigned count;
};

struct made {
    struct http_request request; /* first: the endpoint gets a pointer to it */
    char *text[3];               /* method, path, body */
    struct pairs headers;
    struct pairs arguments;
    unsigned flags;
    unsigned replies;
    bool is_over; /* its connection is closed */
};

static struct {
    struct made made[MOST_REQUESTS];
    unsigned count;
    unsigned handed_over;
} requests;

static struct made *made_of(const struct http_request *request) {
    for (unsigned i = 0; i < requests.count; i++)
        if (&requests.made[i].request == request)
            return &requests.made[i];
    promise(!"a request of ours");
    return NULL;
}

/* --- the server, in place of serve/http_server.c --- */

static const char *find_value(const struct pairs *pairs, const char *name, bool any_case) {
    for (unsigned i = 0; i < pairs->count; i++)
        if ((any_case ? strcasecmp : strcmp)(pairs->name[i], name) == 0)
            return pairs->value[i];
    return NULL;
}

const char *http_header(const struct http_request *request, const char *name) {
    return find_value(&made_of(request)->headers, name, true);
}

bool http_header_repeats(const struct http_request *request, const char *name) {
    const struct pairs *const headers = &made_of(request)->headers;
    unsigned count = 0;
    for (unsigned i = 0; i < headers->count; i++)
        count += strcasecmp(headers->name[i], name) == 0;
    return count > 1;
}

const char *http_argument(const struct http_request *request, const char *name) {
    return find_value(&made_of(request)->arguments, name, true);
}

void http_arguments(const struct http_request *request, MHD_KeyValueIterator visit, void *arg) {
    const struct pairs *const pairs = &made_of(request)->arguments;
    for (unsigned i = 0; i < pairs->count; i++)
        if (visit(arg, MHD_GET_ARGUMENT_KIND, pairs->name[i], pairs->value[i]) != MHD_YES)
            return;
}

bool http_is_abandoned(const struct http_request *request) {
    return made_of(request)->flags & IS_ABANDONED;
}

bool http_is_from_unix(const struct http_request *request) {
    return made_of(request)->flags & FROM_UNIX;
}

bool http_is_trusted(const struct http_request *request) {
    return made_of(request)->flags & IS_TRUSTED;
}

struct http_request *http_server_next(struct http_server *server) {
    (void)server;
    return requests.handed_over < requests.count ? &requests.made[requests.handed_over++].request
                                                 : NULL;
}

bool http_server_step(struct http_server *server) {
    (void)server;
    return true;
}

uint64_t http_server_next_step(const struct http_server *server) {
    (void)server;
    return UINT64_MAX;
}

uint64_t http_server_reply_bytes(const struct http_server *server) {
    (void)server;
    return 0;
}

void http_server_close(struct http_server *server) {
    (void)server;
}

struct http_server *http_server_open(const struct capture_api *api, struct listen_socket *at,
                                     http_gone *gone, void *arg) {
    (void)api, (void)at, (void)gone, (void)arg;
    return NULL;
}

/* --- promises --- */

static bool has_token(const struct made *made) {
    const char *const given = http_header(&made->request, "Authorization");
    return given && strncasecmp(given, "Bearer ", 7) == 0 && strcmp(given + 7, TOKEN) == 0;
}

static bool may_read(const struct made *made) {
    if (http_header_repeats(&made->request, "Host"))
        return false;
    if (made->flags & FROM_UNIX)
        return made->flags & IS_TRUSTED;
    return http_header(&made->request, "Host") && (!*fake.config.listen_token || has_token(made));
}

static bool may_change(const struct made *made) {
    return may_read(made) && (made->flags & FROM_UNIX || fake.config.listen_control);
}

static void check_refusal(const struct http_reply *reply) {
    char text[1024] = "";
    promise(reply->bytes && reply->size > 1 && reply->size < sizeof text);
    memcpy(text, reply->bytes, reply->size);
    promise(strlen(text) == reply->size && text[reply->size - 1] == '\n');
    text[reply->size - 1] = 0;
    promise(is_one_line(text));
    promise(strncmp(reply->type, "text/plain", 10) == 0);
}

void http_reply(struct http_request *request, const struct http_reply *reply) {
    struct made *const made = made_of(request);
    promise(++made->replies == 1 && !made->is_over);
    promise(reply->type && (reply->bytes || reply->is_unsized));
    if (reply->status == MHD_HTTP_OK)
        promise(may_read(made));
    else
        check_refusal(reply);
    if (reply->status == MHD_HTTP_OK && strcmp(request->method, "POST") == 0)
        promise(may_change(made) || strcmp(request->path, "/debug/pprof/symbol") == 0);
    if (strcmp(reply->type, "application/json") == 0)
        promise(strict_json_look(reply->bytes, reply->size).valid);
    free(reply->bytes);
}

/* --- the input --- */

static void take_pairs(struct input *input, uint8_t separator, uint8_t inner, struct pairs *pairs) {
    while (input->left && pairs->count < MOST_PAIRS) {
        char *const name = take_text(input, separator);
        char *const value = strchr(name, inner);
        if (!*name) {
            free(name);
            return;
        }
        if (value)
            *value = 0;
        pairs->name[pairs->count] = name;
        pairs->value[pairs->count++] = value ? value + 1 + strspn(value + 1, " ") : NULL;
    }
}

static void take_request(struct input *whole) {
    struct made *const made = &requests.made[requests.count++];
    const uint8_t *const end = memchr(whole->at, END_OF_REQUEST, whole->left);
    struct input input = {whole->at, end ? (size_t)(end - whole->at) : whole->left};
    whole->left -= input.left + (end != NULL);
    whole->at += input.left + (end != NULL);
    *made = (struct made){.flags = take_byte(&input)};
    made->text[0] = take_text(&input, ' ');
    char *const target = take_text(&input, '\n');
    struct input path = {(const uint8_t *)target, strlen(target)};
    made->text[1] = take_text(&path, '?');
    take_pairs(&path, '&', '=', &made->arguments);
    take_pairs(&input, '\n', ':', &made->headers);
    const bool is_cut = input.left > MOST_BODY;
    input.left = is_cut ? MOST_BODY : input.left;
    const size_t size = input.left;
    made->text[2] = malloc(size + 1);
    promise(made->text[2]);
    if (size)
        memcpy(made->text[2], input.at, size);
    made->text[2][size] = 0;
    made->request = (struct http_request){.method = made->text[0],
                                          .path = made->text[1],
                                          .body = made->text[2],
                                          .body_size = size,
                                          .is_cut = is_cut};
    free(target);
}

static void free_pairs(struct pairs *pairs) {
    for (unsigned i = 0; i < pairs->count; i++)
        free(pairs->name[i]);
}

static void free_requests(void) {
    for (unsigned i = 0; i < requests.count; i++) {
        for (unsigned j = 0; j < sizeof requests.made->text / sizeof *requests.made->text; j++)
            free(requests.made[i].text[j]);
        free_pairs(&requests.made[i].headers);
        free_pairs(&requests.made[i].arguments);
    }
}

/* Closes the connections of some requests, as if the clients had closed them meanwhile: does the
 * same as http_gone() in serve.c. */
static void close_some(void) {
    for (unsigned i = 0; i < requests.count; i++) {
        struct made *const made = &requests.made[i];
        struct window *const window = made->request.owner_data;
        if (!(made->flags & IS_GONE))
            continue;
        made->is_over = true;
        if (window)
            window->request = NULL;
    }
}

static bool anyone_may_change(void) {
    for (unsigned i = 0; i < requests.count; i++)
        if (may_change(&requests.made[i]))
            return true;
    return false;
}

/* --- one input --- */

static void run_exports(struct serve *serve) {
    const uint64_t now = monotonic_nano();
    struct otlp_writer *const empty = otlp_writer_open();
    static const uint64_t sampled[SAMPLE_KINDS];
    struct encoded encoded = {NULL, 0};
    promise(empty != NULL);
    encoded.bytes = otlp_writer_pack(empty, &encoded.size);
    serve_step(serve);
    close_some();
    for (uint64_t i = 1; i <= 3; i++) { /* an empty export each, the last behind every window */
        serve_take(serve, empty, &encoded);
        serve_end_export(serve, now + i * 3600 * NANO_PER_SECOND, i, sampled);
        serve_step(serve);
    }
    serve_pause(serve);
    free(encoded.bytes);
    otlp_writer_close(empty);
}

static void add_line(void *arg, const char *name, const char *value) {
    char *const text = arg;
    snprintf(text + strlen(text), 4096 - strlen(text), "%s=%s\n", name, value);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static char server; /* stands for a server; nothing reads it */
    struct input input = {data, size};
    const unsigned flags = take_byte(&input);
    const char *const environment[] = {
        flags & HAS_FEW_TYPES ? "OTEL_PROFILER_TYPES=cpu" : "OTEL_PROFILER_TYPES=all",
        flags & MAY_CHANGE ? "OTEL_PROFILER_LISTEN_CONTROL=true" : "OTEL_PROFILER_FILE=a",
        flags & HAS_TOKEN ? "OTEL_PROFILER_LISTEN_TOKEN=" TOKEN : NULL, NULL};
    struct capture_api api = fake_capture(environment);
    char before[4096] = "";
    char after[4096] = "";
    api.counters.threads = fake_types;
    api.counters.exports_delivered = api.counters.exports_failed = fake_own_cpu;
    api.harvest.heap_peak = fake_heap_peak;
    requests.count = requests.handed_over = 0;
    while (input.left && requests.count < MOST_REQUESTS)
        take_request(&input);
    const struct budget budget = budget_begin(1, 16 << 20);
    struct resource *const resource = resource_open(&fake.config, &fake.log, "");
    struct serve serve = {.of = {.api = &api, .resource = resource, .control = control_open(&api)},
                          .socket = {.descriptor = -1, .folder = -1, .file = -1},
                          .server = (struct http_server *)&server,
                          .sums = {.are_open = true}};
    promise(serve.of.control && resource);
    control_list(serve.of.control, add_line, before);
    run_exports(&serve);
    control_list(serve.of.control, add_line, after);
    promise(anyone_may_change() || strcmp(before, after) == 0);
    for (unsigned i = 0; i < requests.count; i++)
        promise(requests.made[i].replies == 1 || requests.made[i].is_over);
    control_close(serve.of.control);
    resource_close(resource);
    budget_end(&budget);
    free_requests();
    return 0;
}
