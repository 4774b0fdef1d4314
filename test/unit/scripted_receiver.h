/* Runs a receiver on a real socket, with responses that a test gives, and a sender that sends to
 * it. */
#ifndef OTELPROF_TEST_SCRIPTED_RECEIVER_H
#define OTELPROF_TEST_SCRIPTED_RECEIVER_H

#include "export/sender.h"
#include "fake_capture.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <unistd.h>

/* Describes a server that sends its prepared responses in turn, repeats the last one for ever, and
 * keeps the last request. */
static struct server {
    int listener;
    int port;
    pthread_t thread;
    const char *const *answers;
    /* size of the first response, which may have NULs; 0: the response is a string */
    size_t first_size;
    _Atomic int requests;
    _Atomic bool stop;
    char last[65536];
} server;

static const char ok[] = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";

static size_t body_length(const char *request) {
    const char *const at = strcasestr(request, "Content-Length:");
    return at ? strtoul(at + 15, NULL, 10) : 0;
}

static void serve_one(int connection) {
    size_t have = 0;
    for (;;) {
        const ssize_t got = read(connection, server.last + have, sizeof server.last - 1 - have);
        if (got <= 0)
            break;
        have += (size_t)got;
        server.last[have] = 0;
        const char *const end = strstr(server.last, "\r\n\r\n");
        if (end && have >= (size_t)(end + 4 - server.last) + body_length(server.last))
            break;
    }
    const int number = atomic_fetch_add(&server.requests, 1);
    int which = 0;
    while (which < number && server.answers[which + 1])
        which++;
    const size_t size =
        which == 0 && server.first_size ? server.first_size : strlen(server.answers[which]);
    if (write(connection, server.answers[which], size) < 0)
        return;
}

static void *serve(void *unused) {
    (void)unused;
    while (!atomic_load(&server.stop)) {
        struct pollfd ready = {.fd = server.listener, .events = POLLIN};
        if (poll(&ready, 1, 20) <= 0)
            continue;
        const int connection = accept(server.listener, NULL, NULL);
        serve_one(connection);
        close(connection);
    }
    return NULL;
}

static void start_server(const char *const *answers) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    server = (struct server){.answers = answers};
    server.listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(server.listener, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(server.listener, 8), 0);
    getsockname(server.listener, (struct sockaddr *)&address, &size);
    server.port = ntohs(address.sin_port);
    pthread_create(&server.thread, NULL, serve, NULL);
}

static void stop_server(void) {
    atomic_store(&server.stop, true);
    pthread_join(server.thread, NULL);
    close(server.listener);
}

static struct capture_api api;

/* Opens a sender. In the endpoint's URL, `user` precedes the host, and `query` follows the path.
 * `headers` has the form of OTEL_EXPORTER_OTLP_HEADERS. `more` is one more variable; NULL: there is
 * none. */
static struct sender *open_with(const char *user, const char *query, const char *headers,
                                const char *more) {
    static char endpoint[256];
    static char header_list[256];
    snprintf(endpoint, sizeof endpoint,
             "OTEL_EXPORTER_OTLP_PROFILES_ENDPOINT=http://%s127.0.0.1:%d/v1development/profiles%s",
             user, server.port, query);
    snprintf(header_list, sizeof header_list, "OTEL_EXPORTER_OTLP_HEADERS=%s", headers);
    const char *const environment[] = {endpoint, header_list, more, NULL};
    api = fake_capture(environment);
    struct sender *const sender = sender_open(&api);
    assert_non_null(sender);
    return sender;
}

static void add(struct sender *sender, uint64_t samples) {
    uint8_t *const bytes = malloc(8);
    memcpy(bytes, "profiles", 8);
    sender_add(sender, bytes, 8, samples);
}

static inline void read_log(const char *path, char text[static 1024]) {
    FILE *const file = fopen(path, "r");
    assert_non_null(file);
    text[fread(text, 1, 1023, file)] = 0;
    fclose(file);
}

#endif
