/* Has a child that works, never calls malloc, and is ended by SIGTERM: between two halves of its
 * work it calls the named function, as a worker does for its next piece of work ("none": nothing).
 * Prints the child's id, and the nanoseconds that it used before its end.
 *
 * usage: works_in_child CALL
 */
#define _GNU_SOURCE
#include "cpu_sample.h"
#include "forked.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum { HALF_MS = 30, ERRNO_KEPT = 77 };

static int pair[2];   /* has a byte to read */
static int listener;  /* without an address: accept() fails at once */
static int multiplex; /* epoll */
static char byte;

static void calls_accept4(void) {
    (void)accept4(listener, NULL, NULL, SOCK_CLOEXEC);
}
static void calls_epoll_wait(void) {
    struct epoll_event event;
    (void)epoll_wait(multiplex, &event, 1, 1);
}
static void calls_recvfrom(void) {
    if (recvfrom(pair[0], &byte, 1, 0, NULL, NULL) != 1)
        _exit(1);
}
static void calls_recvmsg(void) {
    struct iovec piece = {&byte, 1};
    struct msghdr message = {.msg_iov = &piece, .msg_iovlen = 1};
    if (recvmsg(pair[0], &message, 0) != 1)
        _exit(1);
}
static void calls_waitpid(void) {
    (void)waitpid(-1, NULL, WNOHANG);
}
static void calls_setitimer(void) {
    static const struct itimerval off;
    (void)setitimer(ITIMER_VIRTUAL, &off, NULL);
}
static void calls_none(void) {
}

static const struct {
    const char *name;
    void (*call)(void);
} calls[] = {
    {"accept4", calls_accept4}, {"epoll_wait", calls_epoll_wait}, {"recvfrom", calls_recvfrom},
    {"recvmsg", calls_recvmsg}, {"waitpid", calls_waitpid},       {"setitimer", calls_setitimer},
    {"none", calls_none},
};

NOIPA static void works_before(void) {
    WORK_FOR(HALF_MS * NS_PER_MS);
    TAKE_CPU_SAMPLE();
}

NOIPA static void works_after(void) {
    WORK_FOR(HALF_MS * NS_PER_MS);
    TAKE_CPU_SAMPLE();
}

static void child(void (*call)(void), volatile uint64_t *used) {
    works_before();
    errno = ERRNO_KEPT;
    call();
    if (errno != ERRNO_KEPT && call != calls_accept4 && call != calls_waitpid) /* these two fail */
        _exit(2);
    works_after();
    *used = cpu_now();
    kill(getpid(), SIGTERM);
}

int main(int argc, char **argv) {
    volatile uint64_t *const used =
        mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int status;
    listener = socket(AF_UNIX, SOCK_STREAM, 0);
    multiplex = epoll_create1(0);
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0 || write(pair[1], "x", 1) != 1)
        return 1;
    for (size_t i = 0; argc == 2 && i < sizeof calls / sizeof *calls; i++) {
        if (strcmp(argv[1], calls[i].name) != 0)
            continue;
        const pid_t id = fork_profiled();
        if (id == 0)
            child(calls[i].call, used);
        waitpid(id, &status, 0);
        printf("%d %llu\n", (int)id, (unsigned long long)*used);
        return WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM ? 0 : 1;
    }
    return 2;
}
