#include "access.h"

#include "config_values.h"

#include <microhttpd.h>
#include <string.h>

static const char bearer[] = "Bearer ";

/* Returns true if the Host header names this machine; `host` may have a port. Other names that
 * resolve to this machine are refused: in a browser, any site can have such a name (DNS
 * rebinding). */
static bool is_this_machine(const char *host) {
    static const char *const names[] = {"localhost", "127.0.0.1", "[::1]"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const size_t size = strlen(names[i]);
        if (text_is_word(host, strlen(host) < size ? strlen(host) : size, names[i]) &&
            (host[size] == 0 || host[size] == ':'))
            return true;
    }
    return false;
}

static bool is_own_origin(const char *origin, const char *host) {
    static const char scheme[] = "http://";
    return !origin || (strncmp(origin, scheme, sizeof scheme - 1) == 0 &&
                       strcmp(origin + sizeof scheme - 1, host) == 0);
}

/* Compares in constant time, so that the duration does not show how many bytes match. */
static bool is_token(const char *given, const char *token) {
    const size_t size = strlen(token);
    unsigned differs = strlen(given) != size;
    for (size_t i = 0; i < size && i < strlen(given); i++)
        differs |= (unsigned char)(given[i] ^ token[i]);
    return !differs;
}

static bool has_token(const struct http_request *request, const char *token) {
    const char *const given = http_header(request, "Authorization");
    return given && strlen(given) >= sizeof bearer - 1 &&
           text_is_word(given, sizeof bearer - 1, bearer) &&
           is_token(given + sizeof bearer - 1, token);
}

const char *access_refusal(const struct config *config, const struct http_request *request,
                           enum access_right right, unsigned *status) {
    *status = MHD_HTTP_FORBIDDEN;
    const bool from_unix = http_is_from_unix(request);
    if (from_unix && !http_is_trusted(request))
        return "Only root and the process's own user are served.";
    if (http_header_repeats(request, "Host")) { /* RFC 9112, 3.2; a proxy may use another of them */
        *status = MHD_HTTP_BAD_REQUEST;
        return "There are several Host headers; the request is refused.";
    }
    if (from_unix)
        return NULL;
    const char *const host = http_header(request, "Host");
    if (!host || !is_this_machine(host))
        return "The Host header names no address of this machine; the request is refused.";
    /* Fetch Metadata: browsers send Sec-Fetch-Site; other clients send no such header. */
    const char *const site = http_header(request, "Sec-Fetch-Site");
    if (!is_own_origin(http_header(request, "Origin"), host) ||
        (site && strcmp(site, "same-origin") != 0 && strcmp(site, "none") != 0))
        return "The request comes from another page; the request is refused.";
    if (*config->listen_token && !has_token(request, config->listen_token)) {
        *status = MHD_HTTP_UNAUTHORIZED;
        return "OTEL_PROFILER_LISTEN_TOKEN is set, and the request has no or another token in "
               "`Authorization: Bearer`; the request is refused.";
    }
    if (right == CHANGE && !config->listen_control)
        return "OTEL_PROFILER_LISTEN_CONTROL is not true; nothing is changed.";
    return NULL;
}
