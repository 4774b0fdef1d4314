#include "endpoint.h"

#include "config_values.h"

#include <stdint.h>
#include <string.h>
#include <sys/un.h>

#define HTTP_BASE "http://localhost:4318"
#define GRPC_BASE "http://localhost:4317"
#define HTTP_PATH "/v1development/profiles"
#define GRPC_PATH "/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export"

static const size_t max_socket_path = sizeof((struct sockaddr_un){0}.sun_path) - 1;

const char *endpoint_default_base(bool grpc) {
    return grpc ? GRPC_BASE : HTTP_BASE;
}

const char *endpoint_default_url(bool grpc) {
    return grpc ? GRPC_BASE GRPC_PATH : HTTP_BASE HTTP_PATH;
}

/* --- the forms --- */

/* Returns the absolute path in unix:/path or unix:///path. NULL: the text has another form. */
static const char *unix_path_in(const char *text) {
    if (strncmp(text, "unix:", 5) != 0)
        return NULL;
    const char *const path = strncmp(text + 5, "//", 2) == 0 ? text + 7 : text + 5;
    return path[0] == '/' && path[1] ? path : NULL;
}

/* Accepts "host", "host:port", "[address]", "[address]:port". Refuses a colon in the host's name,
 * which would be ambiguous, and a slash, which would begin a path or belong to another scheme. */
static bool is_host_and_port(const char *text) {
    const size_t size = *text == '[' ? strcspn(text, "]") + 1 : strcspn(text, ":");
    const size_t least = *text == '[' ? 3 : 1;
    if (size < least || size > strlen(text) || strpbrk(text, "/?#@ \t\r\n"))
        return false;
    uint64_t port;
    const char *const rest = text + size;
    return !*rest || (*rest == ':' && parse_number(rest + 1, 1, UINT16_MAX, &port));
}

/* --- output --- */

struct pen {
    char *at;
    size_t room;
    bool full;
};

/* Adds text without the final NUL, which endpoint_end() writes. */
static void endpoint_add(struct pen *pen, const char *text, size_t size) {
    if (pen->full || size >= pen->room) { /* one byte is reserved for the NUL */
        pen->full = true;
        return;
    }
    memcpy(pen->at, text, size);
    pen->at += size;
    pen->room -= size;
}

static void endpoint_end(struct pen *pen) {
    if (pen->full || pen->room == 0) {
        pen->full = true;
        return;
    }
    *pen->at++ = 0;
    pen->room--;
}

static void endpoint_add_text(struct pen *pen, const char *text) {
    endpoint_add(pen, text, strlen(text));
}

/* Adds the URL, with the signal's path before the query, which stays because some receivers need a
 * key there. Drops a fragment, which is never sent. For gRPC, the call's path replaces the URL's
 * path and query. */
static void endpoint_add_url(struct pen *pen, const char *text, const char *path,
                             struct endpoint_rules rules) {
    const char *const rest = path + strcspn(path, "?#");
    if (rules.grpc) {
        endpoint_add(pen, text, (size_t)(path - text));
        endpoint_add_text(pen, GRPC_PATH);
        return;
    }
    endpoint_add(pen, text, (size_t)(rest - text));
    if (rules.for_profiles)
        endpoint_add_text(pen, rest == path ? "/" : "");
    else
        endpoint_add_text(pen, &HTTP_PATH[rest[-1] == '/']); /* adds one slash between the two */
    if (*rest == '?')
        endpoint_add(pen, rest, strcspn(rest, "#"));
}

enum endpoint_result endpoint_parse(const char *text, struct endpoint_rules rules, char *buffer,
                                    size_t size, struct endpoint *endpoint) {
    const char *const unix_path = unix_path_in(text);
    const char *path;
    struct pen pen = {.at = buffer, .room = size};
    if (unix_path) {
        endpoint_add_text(&pen, rules.unix_tls ? "https://localhost" : "http://localhost");
        endpoint_add_text(&pen, rules.grpc ? GRPC_PATH : HTTP_PATH);
    } else if (parse_url(text, &path)) {
        endpoint_add_url(&pen, text, path, rules);
    } else if (rules.grpc && is_host_and_port(text)) {
        endpoint_add_text(&pen, rules.insecure ? "http://" : "https://");
        endpoint_add_text(&pen, text);
        endpoint_add_text(&pen, GRPC_PATH);
    } else {
        return ENDPOINT_MALFORMED;
    }
    endpoint_end(&pen);
    endpoint->url = buffer;
    endpoint->unix_socket = unix_path ? pen.at : "";
    if (unix_path) {
        endpoint_add_text(&pen, unix_path);
        endpoint_end(&pen);
    }
    endpoint->size = (size_t)(pen.at - buffer);
    if (pen.full || (unix_path && strlen(unix_path) > max_socket_path))
        return ENDPOINT_TOO_LONG;
    return ENDPOINT_FITS;
}
