/* Parses OTEL_PROFILER_LISTEN: `unix:PATH` with an absolute path, or `HOST:PORT` with a loopback
 * host: 127.0.0.1, localhost, [::1].
 *
 * `%p` in a path stands for the process id. A path that ends in `/` is a folder, in which the
 * socket is called PID.sock. So one setting can serve many processes. Context: flush.
 */
#ifndef OTELPROF_LISTEN_ADDRESS_H
#define OTELPROF_LISTEN_ADDRESS_H

#include <netinet/in.h>
#include <stdbool.h>
#include <sys/types.h>

enum { LISTEN_PATH = 1024 };

struct listen_address {
    bool is_unix;
    char path[LISTEN_PATH]; /* if is_unix: absolute, with `%p` expanded */
    struct sockaddr_storage inet;
    socklen_t inet_size;
};

/* Parses the address. Returns NULL, or the error, as a phrase that follows `text` in a message: "is
 * neither ...". */
const char *listen_address_parse(const char *text, pid_t pid, struct listen_address *address);

#endif
