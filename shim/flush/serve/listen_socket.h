/* The socket that the process answers at, in the helper's own table of descriptors.
 *
 * A Unix socket is made with mode 0600, in a folder that nobody but root and the process's user can
 * change (common/own_file.h). One that is left of a process that has ended is replaced; one at
 * which another process answers is not. It listens under a name of its own, ".otelprof-PID-TIME",
 * before it gets the name that others see: so a name that refuses a connection is a dead one's. A
 * process that is killed between the two leaves that file. The next process that listens in the
 * folder removes those of its own user. Context: flush.
 */
#ifndef OTELPROF_LISTEN_SOCKET_H
#define OTELPROF_LISTEN_SOCKET_H

#include "listen_address.h"

#include <stddef.h>
#include <sys/stat.h>

struct listen_socket {
    int descriptor;  /* -1: none */
    int folder;      /* of a Unix socket, to remove it from; -1: none */
    int file;        /* that Unix socket's (O_PATH): /proc shows by which name it is there */
    struct stat own; /* the same */
    char name[LISTEN_PATH];
    char where[LISTEN_PATH + 32]; /* for people: "unix:/run/x.sock", "http://127.0.0.1:4000" */
};

/* The values of errno, and this: somebody answers there. */
enum { LISTEN_TAKEN = 8192 };

/* A port that was left open is in `address` then, to be the same the next time. 0, or -errno, or a
 * negative value of own_file.h's, or -LISTEN_TAKEN. -EMFILE: also where no descriptors would be
 * left to answer with. */
int listen_socket_open(struct listen_socket *opened, struct listen_address *address);

/* Whether nobody finds it any more: its file was removed, or is another's by now. */
bool listen_socket_is_lost(const struct listen_socket *opened);

/* What such an error is: never NULL. */
const char *listen_socket_problem(int error);

/* Closes it, and removes its file if that is still its own. */
void listen_socket_close(struct listen_socket *opened);

/* Forgets it where the thread whose descriptors it used has ended. */
void listen_socket_forget(struct listen_socket *opened);

/* Who is at the other end of a connection to a Unix socket: whether it is root or the process's
 * user. Users that the process's namespace does not know are nobody. */
bool listen_socket_peer_is_trusted(int connection);

#endif
