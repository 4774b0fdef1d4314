/* Opens the listening socket, in the helper's own descriptor table.
 *
 * A Unix socket gets mode 0600, in a folder that only root and the process's user can change
 * (common/private_file.h). A stale socket of a process that has ended is replaced; a socket at
 * which another process listens is not. The new socket listens under a temporary name,
 * ".otelprof-PID-TIME", before it is renamed to its final name: so a final name that refuses
 * connections is always stale. A process that is killed between the two steps leaves the temporary
 * file. The next process that listens in the folder removes such files of its own user. If it
 * listens at PID.sock, it also removes the PID.sock of other processes of its user that were
 * killed: sockets of mode 0600 that are a minute old and refuse connections. Context: flush.
 */
#ifndef OTELPROF_LISTEN_SOCKET_H
#define OTELPROF_LISTEN_SOCKET_H

#include "listen_address.h"

#include <stddef.h>
#include <sys/stat.h>

struct listen_socket {
    int descriptor;       /* -1: not open */
    int folder;           /* the folder of a Unix socket, to remove the file; -1: none */
    int file;             /* the Unix socket's file (O_PATH), whose current name /proc shows */
    struct stat identity; /* status of `file`, by which the file is recognised */
    char name[LISTEN_PATH];
    /* text for messages: "unix:/run/x.sock", "http://127.0.0.1:4000" */
    char where[LISTEN_PATH + 32];
};

/* Defines errors beyond errno's values: another process listens at the address; the folder's file
 * system has no sockets, as some network file systems, or the folder is immutable. */
enum { LISTEN_TAKEN = 8192, LISTEN_NO_SOCKETS };

/* Opens the socket. If `address` has port 0, the kernel chooses one, which is stored in `address`
 * for later calls. Returns 0, -errno, a negative value of private_file.h, or -LISTEN_*. Returns
 * -EMFILE also if too few descriptors would be left to serve a connection. */
int listen_socket_open(struct listen_socket *opened, struct listen_address *address);

/* Returns true if clients cannot find the socket any more: its file was removed or replaced. */
bool listen_socket_is_lost(const struct listen_socket *opened);

/* Describes an error of listen_socket_open(), for a message. */
const char *listen_socket_problem(int error);

/* Closes the socket, and removes its file if that has not been replaced. */
void listen_socket_close(struct listen_socket *opened);

/* Drops the descriptors without closing them. Called after the end of the thread whose descriptor
 * table they were in. */
void listen_socket_forget(struct listen_socket *opened);

/* Returns true if the client of a Unix socket is root or the process's user. A user without a
 * mapping in the process's user namespace is not trusted. */
bool listen_socket_peer_is_trusted(int connection);

#endif
