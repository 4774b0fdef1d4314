/* Preloaded: on its helper's first connection the profiler's exporter always finds something to
 * read: what the server says first, and then HTTP/2 frames that carry nothing, without end. */
#define _GNU_SOURCE
#include <netinet/in.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>

static unsigned short first_port; /* ours; 0: there was no connection yet */
static int has_begun;
static size_t position; /* of the helper */

static int is_on_first_connection(int descriptor) {
    struct sockaddr_in address;
    socklen_t size = sizeof address;
    char name[16] = "";
    prctl(PR_GET_NAME, name);
    if (strncmp(name, "otelprof", 8) != 0 ||
        getsockname(descriptor, (struct sockaddr *)&address, &size) != 0)
        return 0;
    if (!first_port)
        first_port = address.sin_port;
    return address.sin_port == first_port;
}

ssize_t recv(int descriptor, void *bytes, size_t size, int flags) {
    /* WINDOW_UPDATE of the connection by 1 (RFC 9113, 6.9) */
    static const char update[] = {0, 0, 4, 8, 0, 0, 0, 0, 0, 0, 0, 0, 1};
    const int endless = is_on_first_connection(descriptor);
    if (!endless || !has_begun) {
        const ssize_t count = recvfrom(descriptor, bytes, size, flags, NULL, NULL);
        has_begun |= endless && count > 0;
        return count;
    }
    for (size_t i = 0; i < size; i++)
        ((char *)bytes)[i] = update[position++ % sizeof update];
    return (ssize_t)size;
}
