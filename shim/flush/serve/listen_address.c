#include "listen_address.h"

#include "config_values.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

enum { MOST_PORT = 65535 };

static const char unix_prefix[] = "unix:";
static const char not_known[] = "is neither unix:/PATH nor 127.0.0.1:PORT";

/* --- Unix sockets --- */

struct place {
    char *at;
    char *end; /* last position at which the NUL may stand */
};

static bool path_put(struct place *place, const char *text, size_t size) {
    if ((size_t)(place->end - place->at) < size)
        return false;
    memcpy(place->at, text, size);
    place->at += size;
    *place->at = 0;
    return true;
}

static bool expand(const char *text, const char *pid, struct place *place) {
    for (const char *mark; (mark = strstr(text, "%p")); text = mark + 2)
        if (!path_put(place, text, (size_t)(mark - text)) || !path_put(place, pid, strlen(pid)))
            return false;
    return path_put(place, text, strlen(text));
}

static const char *parse_path(const char *text, pid_t process, struct listen_address *address) {
    char pid[16];
    struct place place = {address->path, address->path + sizeof address->path - 1};
    if (*text != '/')
        return "is no absolute path behind unix:";
    snprintf(pid, sizeof pid, "%d", (int)process);
    address->is_unix = true;
    const bool is_folder = text[strlen(text) - 1] == '/';
    if (expand(text, pid, &place) &&
        (!is_folder || (path_put(&place, pid, strlen(pid)) && path_put(&place, ".sock", 5))))
        return NULL;
    return "is too long";
}

/* --- loopback ports --- */

static const char *parse_port(const char *text, struct listen_address *address) {
    const char *const colon = strrchr(text, ':');
    const size_t host = colon ? (size_t)(colon - text) : 0;
    uint64_t port;
    if (!colon || !parse_number(colon + 1, 0, MOST_PORT, &port))
        return not_known;
    if (text_is_word(text, host, "[::1]")) {
        struct sockaddr_in6 *const inet = (void *)&address->inet;
        *inet = (struct sockaddr_in6){.sin6_family = AF_INET6,
                                      .sin6_port = htons((uint16_t)port),
                                      .sin6_addr = in6addr_loopback};
        address->inet_size = sizeof *inet;
    } else if (text_is_word(text, host, "127.0.0.1") || text_is_word(text, host, "localhost")) {
        struct sockaddr_in *const inet = (void *)&address->inet;
        *inet = (struct sockaddr_in){.sin_family = AF_INET,
                                     .sin_port = htons((uint16_t)port),
                                     .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        address->inet_size = sizeof *inet;
    } else {
        return "is no address of this machine alone (127.0.0.1, localhost, [::1])";
    }
    return NULL;
}

const char *listen_address_parse(const char *text, pid_t pid, struct listen_address *address) {
    *address = (struct listen_address){.is_unix = false};
    if (strncmp(text, unix_prefix, sizeof unix_prefix - 1) == 0)
        return parse_path(text + sizeof unix_prefix - 1, pid, address);
    return parse_port(text, address);
}
