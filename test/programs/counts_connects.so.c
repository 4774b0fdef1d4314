/* Is preloaded: adds a byte to the file COUNTED_FILE for every attempt to connect to port
 * COUNTED_PORT. */
#include <fcntl.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

int connect(int socket, const struct sockaddr *address, socklen_t size);

static void count(void) {
    const char *const path = getenv("COUNTED_FILE");
    const int file = path ? open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600) : -1;
    if (file < 0)
        return;
    if (write(file, ".", 1) != 1)
        abort();
    close(file);
}

int connect(int socket, const struct sockaddr *address, socklen_t size) {
    const char *const port = getenv("COUNTED_PORT");
    if (port && address->sa_family == AF_INET &&
        ntohs(((const struct sockaddr_in *)(const void *)address)->sin_port) == atoi(port))
        count();
    return (int)syscall(SYS_connect, socket, address, size);
}
