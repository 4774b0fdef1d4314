/* Where the process answers, read from OTEL_PROFILER_LISTEN: `unix:PATH` with an absolute path, or
 * `HOST:PORT` with a host that is this machine alone: 127.0.0.1, localhost, [::1].
 *
 * `%p` in a path is the process id, and a path that ends in `/` is a folder, in which the socket is
 * called PID.sock: so many processes can have one setting. Context: flush.
 */
#ifndef OTELPROF_LISTEN_ADDRESS_H
#define OTELPROF_LISTEN_ADDRESS_H

#include <netinet/in.h>
#include <stdbool.h>
#include <sys/types.h>

enum { LISTEN_PATH = 1024 };

struct listen_address {
    bool is_unix;
    char path[LISTEN_PATH]; /* is_unix: absolute, `%p` filled in */
    struct sockaddr_storage inet;
    socklen_t inet_size;
};

/* NULL, or what is wrong with `text`, to be said behind it: "is neither ...". */
const char *listen_address_parse(const char *text, pid_t pid, struct listen_address *address);

#endif
