#include "transport_http.h"

#include "authorities.h"
#include "encode/compress.h"
#include "files/by_path.h"
#include "grpc_response.h"
#include "libraries/bounded_read.h"
#include "libraries/claimed_library.h"
#include "receiver_words.h"
#include "request_headers.h"
#include "response.h"
#include "sealed_transfer.h"

#include <ctype.h>
#include <curl/curl.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    MAX_UNPACKED_BYTES = 16 << 10, /* largest unpacked message; a log line shows less */
    /* largest text of a refusal that is kept; a log line shows less */
    MAX_WORDS_BYTES = 4 << 10,
    MAX_RESPONSE_BYTES = 4 << 20, /* largest response, by the specification */
    KEPT_RESPONSE_BYTES = 64 << 10,
    FIRST_DESCRIPTOR = 100, /* programs expect the low numbers for themselves */
    MAX_RETRY_AFTER_S = 24 * 60 * 60,
};

struct transport {
    const struct capture_api *api;
    const char *claim; /* name of the function by which the program claims libcurl */
    struct request_headers headers;
    CURLM *multi; /* transfer under way */
    CURL *easy;
    uint8_t body[KEPT_RESPONSE_BYTES];
    size_t body_size;  /* bytes of the body that are kept */
    size_t body_total; /* bytes of the body that were received */
    struct grpc_response grpc;
    struct sealed_transfer sealed;
    char error[CURL_ERROR_SIZE];
};

static bool is_grpc(const struct transport *t) {
    return t->api->config->protocol == PROTOCOL_GRPC;
}

/* --- libcurl's callbacks --- */

static curl_socket_t open_socket(void *arg, curlsocktype purpose, struct curl_sockaddr *address) {
    (void)arg;
    (void)purpose;
    const int low = socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
    if (low < 0)
        return CURL_SOCKET_BAD;
    const int high = fcntl(low, F_DUPFD_CLOEXEC, FIRST_DESCRIPTOR);
    if (high < 0) /* the limit of descriptors is reached */
        return low;
    close(low);
    return high;
}

static size_t transport_take_body(char *bytes, size_t size, size_t count, void *arg) {
    struct transport *const t = arg;
    const size_t arrived = size * count;
    const size_t room = KEPT_RESPONSE_BYTES - t->body_size;
    const size_t kept = arrived < room ? arrived : room;
    memcpy(t->body + t->body_size, bytes, kept);
    t->body_size += kept;
    t->body_total += arrived;
    return t->body_total <= MAX_RESPONSE_BYTES ? arrived : 0;
}

static size_t transport_take_header(char *line, size_t size, size_t count, void *arg) {
    struct transport *const t = arg;
    grpc_response_take_line(&t->grpc, line, size * count);
    return size * count;
}

/* --- one transfer --- */

/* Returns true for a URL of this machine. Compares the whole host, because "localhost.example" is
 * another host, and a password may precede it. */
static bool is_loopback(const char *url) {
    const char *const scheme = strstr(url, "://");
    const char *host = scheme ? scheme + 3 : url;
    const char *const at = memrchr(host, '@', strcspn(host, "/?#"));
    host = at ? at + 1 : host;
    const size_t size = strcspn(host, ":/?#");
    if (strncmp(host, "[::1]", 5) == 0)
        return true;
    if (strncmp(host, "127.", 4) == 0)
        return strspn(host, "0123456789.") == size;
    return size == strlen("localhost") && strncasecmp(host, "localhost", size) == 0;
}

static void transport_set_tls(CURL *easy, const struct config *config) {
    const char *const authorities = authorities_file(config);
    if (authorities)
        curl_easy_setopt(easy, CURLOPT_CAINFO, authorities);
    if (config->client_certificate[0])
        curl_easy_setopt(easy, CURLOPT_SSLCERT, config->client_certificate);
    if (config->client_key[0])
        curl_easy_setopt(easy, CURLOPT_SSLKEY, config->client_key);
}

/* Prepares gRPC, which needs HTTP/2: TLS negotiates it, and without TLS libcurl begins with it. A
 * proxy is used as a tunnel, because a proxy forwards no HTTP/2. */
static void set_grpc(struct transport *t) {
    const bool tls = strncasecmp(t->api->config->endpoint, "https:", 6) == 0;
    curl_easy_setopt(t->easy, CURLOPT_HTTP_VERSION,
                     tls ? (long)CURL_HTTP_VERSION_2TLS
                         : (long)CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE);
    curl_easy_setopt(t->easy, CURLOPT_HTTPPROXYTUNNEL, 1L);
    curl_easy_setopt(t->easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
    curl_easy_setopt(t->easy, CURLOPT_HEADERFUNCTION, transport_take_header);
    curl_easy_setopt(t->easy, CURLOPT_HEADERDATA, t);
}

static void set_options(struct transport *t, const struct export *export, uint64_t timeout_ms) {
    const struct config *const config = t->api->config;
    CURL *const easy = t->easy;
    curl_easy_setopt(easy, CURLOPT_URL, config->endpoint);
    curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    /* libcurl's resolver thread is not joined, because it may be stuck in the name service */
    curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L);
    curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
    curl_easy_setopt(easy, CURLOPT_FORBID_REUSE, 1L);
    curl_easy_setopt(easy, CURLOPT_USERAGENT,
                     "libotelprof/" OTELPROF_VERSION " OTel-OTLP-Exporter-C/" OTELPROF_VERSION);
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, t->headers.list);
    curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t) export->size);
    curl_easy_setopt(easy, CURLOPT_POSTFIELDS, export->bytes);
    curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, (long)timeout_ms);
    curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, open_socket);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, transport_take_body);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, t);
    curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, t->error);
    if (is_loopback(config->endpoint))
        curl_easy_setopt(easy, CURLOPT_PROXY, "");
    if (config->unix_socket[0])
        curl_easy_setopt(easy, CURLOPT_UNIX_SOCKET_PATH, config->unix_socket);
    transport_set_tls(easy, config);
    if (is_grpc(t))
        set_grpc(t);
}

/* Prepares the transfer if the program has changed its root. Ends the profiler and returns false if
 * the transfer cannot work without the old root. */
static bool set_root(struct transport *t) {
    if (may_open_by_path() || sealed_transfer_set(&t->sealed, t->api->config, t->easy,
                                                  is_loopback(t->api->config->endpoint)))
        return true;
    t->api->lifecycle.give_up(
        "OTEL_EXPORTER_OTLP_ENDPOINT cannot be reached without files, and the program "
        "has changed its root or its mounts");
    return false;
}

static void end_transfer(struct transport *t) {
    if (t->multi && t->easy)
        curl_multi_remove_handle(t->multi, t->easy);
    if (t->easy)
        curl_easy_cleanup(t->easy);
    if (t->multi)
        curl_multi_cleanup(t->multi);
    request_headers_free(&t->headers);
    t->easy = NULL;
    t->multi = NULL;
    sealed_transfer_unset(&t->sealed);
    curl_global_cleanup();
}

/* Returns true if the program claims libcurl (claimed_library.h). Called before each transfer,
 * because the program may have loaded objects since. */
static bool is_claimed(struct transport *t) {
    t->claim = claimed_library_function();
    return t->claim != NULL;
}

static enum transport_state transport_start(struct transport *t, const struct export *export,
                                            uint64_t timeout_ms) {
    if (is_claimed(t))
        return TRANSPORT_CLAIMED;
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
        return TRANSPORT_RETRY;
    enum transport_state state = TRANSPORT_RETRY;
    request_headers_make(&t->headers, t->api, export->encoding, timeout_ms);
    t->multi = curl_multi_init();
    t->easy = curl_easy_init();
    if (t->multi && t->easy) {
        set_options(t, export, timeout_ms);
        if (!set_root(t))
            state = TRANSPORT_CLOSED;
        else if (curl_multi_add_handle(t->multi, t->easy) == CURLM_OK)
            state = TRANSPORT_BUSY;
    }
    if (state != TRANSPORT_BUSY)
        end_transfer(t);
    return state;
}

enum transport_state transport_begin(struct transport *t, const struct export *export,
                                     uint64_t timeout_ms) {
    if (!t->api->guard.lock_enter())
        return TRANSPORT_CLOSED;
    t->body_size = 0;
    t->body_total = 0;
    t->grpc = (struct grpc_response){.code = GRPC_UNKNOWN};
    t->error[0] = 0;
    const enum transport_state state = transport_start(t, export, timeout_ms);
    t->api->guard.lock_leave();
    return state;
}

/* --- the response --- */

static bool response_is_too_long(const struct transport *t) {
    return t->body_total > MAX_RESPONSE_BYTES;
}

/* Returns the delay that the receiver requests, in ns, at most a day; 0 if the response has no
 * delay, or a moment that has passed: the receiver's clock may be slow. */
static uint64_t retry_after_nano(CURL *easy) {
    curl_off_t seconds = 0;
    curl_easy_getinfo(easy, CURLINFO_RETRY_AFTER, &seconds);
    if (seconds <= 0)
        return 0;
    return (uint64_t)(seconds < MAX_RETRY_AFTER_S ? seconds : MAX_RETRY_AFTER_S) * 1000000000u;
}

static bool may_be_retried(long status) {
    return status == 429 || status == 502 || status == 503 || status == 504;
}

static void transport_set_message(const struct transport *t, const char *what, const char *words,
                                  struct transport_response *response) {
    receiver_words(t->api->config, what, words, response->message, sizeof response->message);
}

static void transport_read_partial_success(const struct transport *t, const uint8_t *bytes,
                                           size_t size, struct transport_response *response) {
    struct partial_success partial;
    const char *type = NULL;
    curl_easy_getinfo(t->easy, CURLINFO_CONTENT_TYPE, &type);
    const bool sends_json = t->api->config->protocol == PROTOCOL_HTTP_JSON;
    response_read(bytes, size, response_is_json(type, sends_json), &partial);
    response->rejected_profiles = partial.rejected_profiles;
    transport_set_message(t, "", partial.message, response);
}

/* Reads the message that came with the status; it may be compressed. */
static void read_grpc_message(const struct transport *t, struct transport_response *response) {
    uint8_t unpacked[MAX_UNPACKED_BYTES];
    bool compressed;
    size_t size;
    const uint8_t *const message = grpc_unwrap(t->body, t->body_size, &size, &compressed);
    if (!message)
        return;
    if (!compressed) {
        transport_read_partial_success(t, message, size, response);
        return;
    }
    const size_t unpacked_size = decompress(message, size, unpacked, sizeof unpacked);
    if (unpacked_size || size == 0)
        transport_read_partial_success(t, unpacked, unpacked_size, response);
}

/* Returns true if the response has gRPC headers, at most the beginning of a message, and no gRPC
 * status. libcurl may report such a response as complete if the stream was reset with NO_ERROR. */
static bool is_cut_short(const struct transport *t, const struct transport_response *response) {
    static const char grpc[] = "application/grpc";
    char *type = NULL;
    bool compressed;
    size_t size;
    if (t->grpc.has_status || response->status != 200)
        return false;
    curl_easy_getinfo(t->easy, CURLINFO_CONTENT_TYPE, &type);
    if (!type || strncasecmp(type, grpc, sizeof grpc - 1) != 0)
        return false;
    return t->body_size == 0 ||
           (t->body[0] <= 1 && !grpc_unwrap(t->body, t->body_size, &size, &compressed));
}

/* Judges the call by its gRPC status. If the receiver sent none, maps the status of HTTP to a
 * code. */
static enum transport_state judge_grpc(const struct transport *t,
                                       struct transport_response *response) {
    const struct grpc_response *const grpc = &t->grpc;
    if (grpc->has_status && grpc->code == GRPC_OK) {
        read_grpc_message(t, response);
        return TRANSPORT_ACCEPTED;
    }
    if (is_cut_short(t, response)) {
        snprintf(response->message, sizeof response->message, "its response is truncated");
        return TRANSPORT_RETRY;
    }
    const enum grpc_code code = grpc->has_status ? grpc->code : grpc_code_of_http(response->status);
    const bool hinted = grpc->has_status && grpc->has_retry_info;
    if (hinted)
        response->retry_after_nano = grpc->retry_delay_nano;
    char what[96];
    if (grpc->has_status)
        snprintf(what, sizeof what, "gRPC status %s", grpc_code_name(code));
    else
        snprintf(what, sizeof what, "HTTP status %ld without a gRPC status, taken as %s",
                 response->status, grpc_code_name(code));
    transport_set_message(t, what, grpc->has_status ? grpc->message : "", response);
    return grpc_may_be_retried(code, hinted) ? TRANSPORT_RETRY : TRANSPORT_REFUSED;
}

static enum transport_state judge_http(const struct transport *t,
                                       struct transport_response *response) {
    if (response->status >= 200 && response->status < 300) {
        if (response_is_too_long(t))
            snprintf(response->message, sizeof response->message,
                     "its response is longer than 4 MiB and is not read");
        else
            transport_read_partial_success(t, t->body, t->body_size, response);
        return TRANSPORT_ACCEPTED;
    }
    const char *type = NULL;
    char text[MAX_WORDS_BYTES];
    char what[64];
    curl_easy_getinfo(t->easy, CURLINFO_CONTENT_TYPE, &type);
    response_read_refusal(t->body, t->body_size, type, text, sizeof text);
    snprintf(what, sizeof what, "HTTP status %ld", response->status);
    transport_set_message(t, what, text, response);
    return may_be_retried(response->status) ? TRANSPORT_RETRY : TRANSPORT_REFUSED;
}

/* Trims trailing blanks: Mbed TLS ends its messages with a new line. */
static void trim_error(struct transport *t) {
    for (size_t size = strlen(t->error); size && isspace((unsigned char)t->error[size - 1]);)
        t->error[--size] = 0;
}

/* Writes libcurl's error to the response. If a gRPC call was connected and got no HTTP status, adds
 * a hint: another protocol may listen at the port, and libcurl's error does not mention gRPC. */
static void transport_explain(struct transport *t, CURLcode result,
                              struct transport_response *response) {
    curl_off_t begun =
        0; /* time when the connection, TLS included, was ready for the request; 0: it never was */
    curl_easy_getinfo(t->easy, CURLINFO_PRETRANSFER_TIME_T, &begun);
    const bool hint = is_grpc(t) && begun && !response->status;
    trim_error(t);
    snprintf(response->message, sizeof response->message, "%s%s",
             hint ? "connected, but no gRPC response: " : "",
             t->error[0] ? t->error : curl_easy_strerror(result));
}

/* Returns true if the response has its status. The status counts even if the connection, or the
 * rest of the request or response, failed later: HTTP's status comes first, and an accepted export
 * must not be sent again; gRPC's status comes last. */
static bool has_status(const struct transport *t, const struct transport_response *response) {
    return is_grpc(t) ? t->grpc.complete : response->status >= 200;
}

static enum transport_state transport_judge(struct transport *t, CURLcode result,
                                            struct transport_response *response) {
    curl_easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &response->status);
    response->retry_after_nano = retry_after_nano(t->easy);
    if (result != CURLE_OK && !has_status(t, response)) {
        if (!response_is_too_long(t)) {
            transport_explain(t, result, response);
            return TRANSPORT_RETRY;
        }
        /* reports the receiver as connected, because the specification forbids a retry */
        response->connected = true;
        snprintf(response->message, sizeof response->message, "its response is longer than 4 MiB");
        return TRANSPORT_REFUSED;
    }
    response->connected = true;
    return is_grpc(t) ? judge_grpc(t, response) : judge_http(t, response);
}

static enum transport_state transport_perform(struct transport *t,
                                              struct transport_response *response) {
    int running = 0;
    int left = 0;
    if (curl_multi_perform(t->multi, &running) != CURLM_OK)
        return TRANSPORT_RETRY;
    const CURLMsg *const message = curl_multi_info_read(t->multi, &left);
    if (message && message->msg == CURLMSG_DONE)
        return transport_judge(t, message->data.result, response);
    if (t->grpc.complete) /* the server need not read the rest of the request */
        return transport_judge(t, CURLE_OK, response);
    return running ? TRANSPORT_BUSY : TRANSPORT_RETRY;
}

enum transport_state transport_step(struct transport *t, struct transport_response *response) {
    *response = (struct transport_response){0};
    if (!t->api->guard.lock_enter())
        return TRANSPORT_CLOSED;
    bounded_read_begin(t->api->guard.lock_is_awaited);
    const enum transport_state state = transport_perform(t, response);
    bounded_read_end();
    if (state == TRANSPORT_ACCEPTED)
        sealed_transfer_remember(&t->sealed, t->api->config, t->easy);
    if (state != TRANSPORT_BUSY)
        end_transfer(t);
    t->api->guard.lock_leave();
    return state;
}

void transport_prepare(struct transport *t) {
    if (may_open_by_path() && !t->claim)
        sealed_transfer_prepare(&t->sealed, t->api->config);
}

void transport_cancel(struct transport *t) {
    if (!t->api->guard.lock_enter())
        return;
    if (t->multi || t->easy)
        end_transfer(t);
    t->api->guard.lock_leave();
}

/* --- opening and closing --- */

struct transport *transport_open(const struct capture_api *api) {
    struct transport *const t = calloc(1, sizeof *t);
    if (!t)
        return NULL;
    t->api = api;
    if (!api->guard.lock_enter()) {
        free(t);
        return NULL;
    }
    /* initializes libcurl once, because some data is read only once in a process (TLS's
     * configuration): it is read now, and stays for the transfers */
    const CURLcode result = is_claimed(t) ? CURLE_OK : curl_global_init(CURL_GLOBAL_DEFAULT);
    if (!t->claim && result == CURLE_OK) {
        (void)bounded_read_take_over();
        curl_global_cleanup();
    }
    api->guard.lock_leave();
    if (result == CURLE_OK)
        return t;
    log_write(api->log, log_level_in_tree(api->log, LOG_INSTALLATION, LOG_ERROR),
              "libcurl cannot start (%s); nothing is sent", curl_easy_strerror(result));
    free(t);
    return NULL;
}

const char *transport_claim(const struct transport *t) {
    return t->claim;
}

void transport_close(struct transport *t) {
    if (!t)
        return;
    sealed_transfer_free(&t->sealed);
    free(t);
}
