#include "http_server.h"

#include "clock.h"
#include "config_values.h"
#include "http_library.h"

#include <poll.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    MOST_CONNECTIONS = 32,
    MEMORY_OF_EACH = 16 * 1024,
    MOST_BODY = 4 * 1024,
    IDLE_SECONDS = 10,
};
/* Bounds the time for receiving a whole request, however slowly it arrives, and for sending a whole
 * reply. */
static const uint64_t receive_nano = UINT64_C(10) * NANO_PER_SECOND;
static const uint64_t send_nano = UINT64_C(60) * NANO_PER_SECOND;

/* Lists the states of a request. MHD calls its access handler first for the headers, then for each
 * piece of the body, then for the reply, and once more for the reply if the connection was
 * suspended. */
enum progress { READS_BODY, RECEIVED, HANDED_OVER, REPLIED };

struct http_connection {
    struct http_request request;
    struct http_server *server;
    struct http_connection *next;
    struct MHD_Connection *mhd;
    enum progress progress;
    bool suspended;
    bool from_unix;
    struct http_reply reply;
    char body[MOST_BODY + 1];
};

/* Describes a connection, which carries one request, from accept to close. */
struct http_peer {
    struct http_peer *next;
    struct MHD_Connection *mhd;
    uint64_t deadline; /* CLOCK_MONOTONIC, ns; UINT64_MAX while the reply is prepared */
};

struct http_server {
    const struct capture_api *api;
    const struct http_library *library;
    struct MHD_Daemon *daemon;
    int epoll;
    bool is_unix;
    bool damaged;
    bool closing;
    jmp_buf panic;
    http_gone *gone;
    void *arg;
    struct http_connection *first; /* list of all requests in progress, newest first */
    struct http_peer *peers;
};

/* --- recovery from the library's panic --- */

static struct http_server *running; /* the server whose library code is running; else NULL */

static void leave_library(void *cls, const char *file, unsigned line, const char *reason) {
    (void)cls, (void)file, (void)line, (void)reason;
    if (running)
        longjmp(running->panic, 1);
    abort(); /* the library's default; reached only for a daemon of the program's own */
}

static bool call_library(struct http_server *server, void (*call)(struct http_server *server)) {
    if (server->damaged)
        return false;
    running = server;
    if (setjmp(server->panic) == 0)
        call(server);
    else
        server->damaged = true;
    running = NULL;
    return !server->damaged;
}

static void run(struct http_server *server) {
    (void)server->library->run(server->daemon);
}

/* --- connections --- */

static int socket_of(const struct http_server *server, struct MHD_Connection *mhd) {
    const union MHD_ConnectionInfo *const info =
        server->library->get_connection_info(mhd, MHD_CONNECTION_INFO_CONNECTION_FD);
    return info ? info->connect_fd : -1;
}

static void end_peer(struct http_server *server, struct http_peer *peer) {
    struct http_peer **at = &server->peers;
    while (*at && *at != peer)
        at = &(*at)->next;
    if (*at)
        *at = peer->next;
    free(peer);
}

/* MHD calls this when a connection begins or ends. A connection without memory has no deadline. */
static void http_notify_connection(void *cls, struct MHD_Connection *mhd, void **peer,
                                   enum MHD_ConnectionNotificationCode code) {
    struct http_server *const server = cls;
    if (code == MHD_CONNECTION_NOTIFY_CLOSED) {
        end_peer(server, *peer);
        return;
    }
    struct http_peer *const added = calloc(1, sizeof *added);
    *peer = added;
    if (!added)
        return;
    *added = (struct http_peer){server->peers, mhd, monotonic_nano() + receive_nano};
    server->peers = added;
}

static void set_deadline(struct http_server *server, const struct MHD_Connection *mhd,
                         uint64_t deadline) {
    for (struct http_peer *it = server->peers; it; it = it->next)
        if (it->mhd == mhd)
            it->deadline = deadline;
}

/* Shuts down connections past their deadline. MHD then sees their end and closes them. shutdown(2)
 * is tried once for each connection; if it fails, MHD's own timeout closes the connection. */
static void shut_down_slow_peers(struct http_server *server) {
    const uint64_t now = monotonic_nano();
    for (struct http_peer *it = server->peers; it; it = it->next) {
        if (now < it->deadline)
            continue;
        (void)shutdown(socket_of(server, it->mhd), SHUT_RDWR);
        it->deadline = UINT64_MAX;
    }
}

static uint64_t next_deadline(const struct http_server *server) {
    uint64_t next = UINT64_MAX;
    for (const struct http_peer *it = server->peers; it; it = it->next)
        if (it->deadline < next)
            next = it->deadline;
    return next;
}

/* --- requests --- */

static void http_unlist_request(struct http_server *server,
                                const struct http_connection *connection) {
    struct http_connection **at = &server->first;
    while (*at && *at != connection)
        at = &(*at)->next;
    if (*at)
        *at = connection->next;
}

static struct http_connection *http_begin_request(struct http_server *server,
                                                  struct MHD_Connection *mhd, const char *path,
                                                  const char *method) {
    struct http_connection *const connection = calloc(1, sizeof *connection);
    if (!connection)
        return NULL;
    connection->server = server;
    connection->mhd = mhd;
    connection->from_unix = server->is_unix;
    connection->request = (struct http_request){
        .method = method, .path = path, .body = connection->body, .connection = connection};
    connection->next = server->first;
    server->first = connection;
    return connection;
}

static void http_take_body(struct http_connection *connection, const char *bytes, size_t size) {
    struct http_request *const request = &connection->request;
    if (size > MOST_BODY - request->body_size) {
        request->is_cut = true;
        return;
    }
    memcpy(connection->body + request->body_size, bytes, size);
    request->body_size += size;
}

static ssize_t read_nothing(void *cls, uint64_t at, char *bytes, size_t most) {
    (void)cls, (void)at, (void)bytes, (void)most;
    return MHD_CONTENT_READER_END_OF_STREAM;
}

/* Sends the reply. The library sends the reply's own bytes, which stay until http_end_request(). */
static enum MHD_Result send_reply(const struct http_connection *connection) {
    const struct http_library *const library = connection->server->library;
    const struct http_reply *const reply = &connection->reply;
    struct MHD_Response *const response =
        reply->is_unsized
            ? library->create_response_from_callback(MHD_SIZE_UNKNOWN, 1, read_nothing, NULL, NULL)
            : library->create_response_from_buffer(reply->size, reply->bytes,
                                                   MHD_RESPMEM_PERSISTENT);
    if (!response)
        return MHD_NO;
    /* not in chunks, because libmicrohttpd would send the last chunk for HEAD */
    if (reply->is_unsized)
        library->set_response_options(response, MHD_RF_HTTP_VERSION_1_0_ONLY, MHD_RO_END);
    library->add_response_header(response, "Content-Type", reply->type);
    library->add_response_header(response, "Connection", "close");
    library->add_response_header(response, "Cache-Control", "no-store");
    library->add_response_header(response, "X-Content-Type-Options", "nosniff");
    library->add_response_header(response, "Content-Security-Policy",
                                 "default-src 'none'; style-src 'unsafe-inline'");
    if (reply->file)
        library->add_response_header(response, "Content-Disposition", reply->file);
    if (reply->allow)
        library->add_response_header(response, "Allow", reply->allow);
    if (reply->location)
        library->add_response_header(response, "Location", reply->location);
    const enum MHD_Result queued =
        library->queue_response(connection->mhd, reply->status, response);
    library->destroy_response(response);
    return queued;
}

static void http_suspend(struct http_connection *connection) {
    connection->progress = RECEIVED;
    connection->suspended = true;
    set_deadline(connection->server, connection->mhd, UINT64_MAX);
    connection->server->library->suspend_connection(connection->mhd);
}

/* Implements MHD's access handler. */
static enum MHD_Result http_take_request(void *cls, struct MHD_Connection *mhd, const char *path,
                                         const char *method, const char *version, const char *body,
                                         size_t *body_size, void **state) {
    struct http_server *const server = cls;
    struct http_connection *const connection = *state;
    (void)version;
    if (!connection) {
        *state = http_begin_request(server, mhd, path, method);
        return *state ? MHD_YES : MHD_NO;
    }
    if (*body_size) {
        http_take_body(connection, body, *body_size);
        *body_size = 0;
        return MHD_YES;
    }
    if (connection->progress == REPLIED)
        return send_reply(connection);
    if (!server->closing)
        http_suspend(connection);
    return server->closing ? MHD_NO : MHD_YES;
}

/* MHD calls this when a request has ended. */
static void http_end_request(void *cls, struct MHD_Connection *mhd, void **state,
                             enum MHD_RequestTerminationCode code) {
    struct http_server *const server = cls;
    struct http_connection *const connection = *state;
    (void)mhd, (void)code;
    if (!connection)
        return;
    if (connection->progress == HANDED_OVER)
        server->gone(server->arg, &connection->request);
    http_unlist_request(server, connection);
    free(connection->reply.bytes);
    free(connection);
    *state = NULL;
}

/* --- opening and closing --- */

static struct MHD_Daemon *http_start(struct http_server *server, const struct listen_socket *at) {
    server->library->set_panic_func(leave_library, NULL);
    return server->library->start_daemon(
        MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL, http_take_request, server,
        MHD_OPTION_LISTEN_SOCKET, at->descriptor, MHD_OPTION_CONNECTION_LIMIT, MOST_CONNECTIONS,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)MEMORY_OF_EACH, MHD_OPTION_CONNECTION_TIMEOUT,
        IDLE_SECONDS, MHD_OPTION_NOTIFY_COMPLETED, http_end_request, server,
        MHD_OPTION_NOTIFY_CONNECTION, http_notify_connection, server, MHD_OPTION_END);
}

static void epoll_is_ready(void *arg, int descriptor, unsigned events) {
    struct http_server *const server = arg;
    (void)descriptor, (void)events;
    (void)call_library(server, run);
    server->api->wait.wake();
}

static bool open_locked(struct http_server *server, const struct listen_socket *at) {
    server->library = http_library();
    server->is_unix = at->folder >= 0;
    if (server->library)
        server->daemon = http_start(server, at);
    else
        close(at->descriptor);
    if (!server->daemon)
        return false;
    const union MHD_DaemonInfo *const info =
        server->library->get_daemon_info(server->daemon, MHD_DAEMON_INFO_EPOLL_FD);
    server->epoll = info ? info->epoll_fd : -1;
    const struct watched_descriptor watched = {server->epoll, POLLIN, epoll_is_ready, server};
    if (server->epoll >= 0 && server->api->wait.watch_fd(&watched))
        return true;
    server->library->stop_daemon(server->daemon);
    return false;
}

struct http_server *http_server_open(const struct capture_api *api, struct listen_socket *at,
                                     http_gone *gone, void *arg) {
    struct http_server *const server = calloc(1, sizeof *server);
    bool opened = false;
    if (server && api->guard.lock_enter()) {
        *server = (struct http_server){.api = api, .gone = gone, .arg = arg};
        opened = open_locked(server, at);
        api->guard.lock_leave();
    } else {
        close(at->descriptor);
    }
    at->descriptor = -1;
    if (opened)
        return server;
    free(server);
    return NULL;
}

static void http_resume(struct http_connection *connection) {
    connection->suspended = false;
    set_deadline(connection->server, connection->mhd, monotonic_nano() + send_nano);
    connection->server->library->resume_connection(connection->mhd);
}

/* Resumes all connections first: MHD panics if a daemon stops while a connection is suspended. */
static void http_stop(struct http_server *server) {
    server->closing = true;
    for (struct http_connection *it = server->first; it; it = it->next)
        if (it->suspended)
            http_resume(it);
    server->library->stop_daemon(server->daemon); /* also closes the listening socket */
}

void http_server_close(struct http_server *server) {
    if (!server)
        return;
    server->api->wait.unwatch_fd(server->epoll);
    if (server->api->guard.lock_enter()) {
        (void)call_library(server, http_stop);
        server->api->guard.lock_leave();
    }
    if (!server->damaged)
        free(server);
}

static struct http_connection *oldest_received(const struct http_server *server) {
    /* the list is newest first, so the last one found is the oldest */
    struct http_connection *oldest = NULL;
    for (struct http_connection *it = server->first; it; it = it->next)
        if (it->progress == RECEIVED)
            oldest = it;
    return oldest;
}

struct http_request *http_server_next(struct http_server *server) {
    struct http_connection *const oldest = oldest_received(server);
    if (!oldest)
        return NULL;
    oldest->progress = HANDED_OVER;
    return &oldest->request;
}

void http_reply(struct http_request *request, const struct http_reply *reply) {
    request->connection->reply = *reply;
    request->connection->progress = REPLIED;
}

uint64_t http_server_reply_bytes(const struct http_server *server) {
    uint64_t bytes = 0;
    for (const struct http_connection *it = server->first; it; it = it->next)
        bytes += it->progress == REPLIED ? it->reply.size : 0;
    return bytes;
}

const char *http_header(const struct http_request *request, const char *name) {
    const struct http_connection *const connection = request->connection;
    return connection->server->library->lookup_connection_value(connection->mhd, MHD_HEADER_KIND,
                                                                name);
}

struct named_headers {
    const char *name;
    unsigned count;
};

static enum MHD_Result count_named(void *arg, enum MHD_ValueKind kind, const char *name,
                                   const char *value) {
    struct named_headers *const named = arg;
    (void)kind, (void)value;
    named->count += text_equals_ignoring_case(name, named->name);
    return MHD_YES;
}

bool http_header_repeats(const struct http_request *request, const char *name) {
    const struct http_connection *const connection = request->connection;
    struct named_headers named = {.name = name};
    connection->server->library->get_connection_values(connection->mhd, MHD_HEADER_KIND,
                                                       count_named, &named);
    return named.count > 1;
}

const char *http_argument(const struct http_request *request, const char *name) {
    const struct http_connection *const connection = request->connection;
    return connection->server->library->lookup_connection_value(connection->mhd,
                                                                MHD_GET_ARGUMENT_KIND, name);
}

void http_arguments(const struct http_request *request, MHD_KeyValueIterator visit, void *arg) {
    const struct http_connection *const connection = request->connection;
    connection->server->library->get_connection_values(connection->mhd, MHD_GET_ARGUMENT_KIND,
                                                       visit, arg);
}

/* Takes any event for the client's end: HTTP clients do not half-close a connection while they wait
 * for a response, and bytes after the request are not expected. */
bool http_is_abandoned(const struct http_request *request) {
    const struct http_connection *const connection = request->connection;
    struct pollfd peer = {.fd = socket_of(connection->server, connection->mhd),
                          .events = POLLRDHUP};
    return poll(&peer, 1, 0) > 0;
}

bool http_is_from_unix(const struct http_request *request) {
    return request->connection->from_unix;
}

bool http_is_trusted(const struct http_request *request) {
    const struct http_connection *const connection = request->connection;
    return listen_socket_peer_is_trusted(socket_of(connection->server, connection->mhd));
}

static void send_replies(struct http_server *server) {
    for (struct http_connection *it = server->first; it; it = it->next)
        if (it->suspended && it->progress == REPLIED)
            http_resume(it);
    shut_down_slow_peers(server);
    run(server);
}

bool http_server_step(struct http_server *server) {
    if (!server->api->guard.lock_enter())
        return true;
    const bool sound = call_library(server, send_replies);
    server->api->guard.lock_leave();
    return sound;
}

uint64_t http_server_next_step(const struct http_server *server) {
    const uint64_t deadline = next_deadline(server);
    MHD_UNSIGNED_LONG_LONG milliseconds;
    if (oldest_received(server))
        return 0; /* the last step has received a request, so a step is due now */
    if (server->damaged || server->library->get_timeout(server->daemon, &milliseconds) != MHD_YES)
        return server->damaged ? UINT64_MAX : deadline;
    const uint64_t timeout = monotonic_nano() + (milliseconds + 1) * NANO_PER_MILLI;
    return timeout < deadline ? timeout : deadline;
}
