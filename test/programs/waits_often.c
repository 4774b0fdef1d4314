/* Has threads that work for a tenth of a millisecond between short waits, in calls that return by
 * themselves and that a signal could end early. Prints for each call whether there were any waits,
 * and how many of them ended with EINTR.
 *
 * usage: waits_often SECONDS */
#define _GNU_SOURCE
#include "cpu_work.h"

#include <errno.h>
#include <fcntl.h>
#include <mqueue.h>
#include <netinet/in.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

enum { WAIT_NANO = 200000, WORK_NANO = 100000 };

static const struct timespec small = {0, WAIT_NANO};
static atomic_bool over;
static char byte_;
static struct iovec part = {&byte_, 1};

static struct timespec in(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    t.tv_nsec += WAIT_NANO;
    t.tv_sec += t.tv_nsec / 1000000000;
    t.tv_nsec %= 1000000000;
    return t;
}

static int returned(int error) {
    errno = error;
    return error ? -1 : 0;
}

/* --- objects that threads wait for: made once for each thread --- */

static int pair(int option, bool is_full) {
    const struct timeval time = {0, WAIT_NANO / 1000};
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0)
        return -1;
    setsockopt(ends[0], SOL_SOCKET, option, &time, sizeof time);
    static char bytes[4096];
    while (is_full && send(ends[0], bytes, sizeof bytes, MSG_DONTWAIT) > 0)
        ;
    return ends[0];
}

static int empty(void) {
    return pair(SO_RCVTIMEO, false);
}

static int full(void) {
    return pair(SO_SNDTIMEO, true);
}

static int listener(void) {
    const struct timeval time = {0, WAIT_NANO / 1000};
    const struct sockaddr_in address = {.sin_family = AF_INET,
                                        .sin_addr = {htonl(INADDR_LOOPBACK)}};
    const int file = socket(AF_INET, SOCK_STREAM, 0);
    bind(file, (const struct sockaddr *)&address, sizeof address);
    listen(file, 1);
    setsockopt(file, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof time);
    return file;
}

static int epoll(void) {
    return epoll_create1(0);
}

static int timer(void) {
    return timerfd_create(CLOCK_MONOTONIC, 0);
}

static int full_queue(void) {
    const struct mq_attr attributes = {.mq_maxmsg = 1, .mq_msgsize = 1};
    char name[64];
    snprintf(name, sizeof name, "/waits_often.%d", (int)gettid());
    const mqd_t queue = mq_open(name, O_RDWR | O_CREAT, 0600, &attributes);
    mq_unlink(name);
    mq_send(queue, &byte_, 1, 0);
    return queue;
}

/* --- the calls: each returns -1 with errno, or anything else --- */

static int in_recvfrom(int file) {
    return (int)recvfrom(file, &byte_, 1, 0, NULL, NULL);
}
static int in_recvmsg(int file) {
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    return (int)recvmsg(file, &message, 0);
}
static int in_recvmmsg(int file) {
    struct mmsghdr message = {{.msg_iov = &part, .msg_iovlen = 1}, 0};
    return recvmmsg(file, &message, 1, 0, NULL);
}
static int in_sendto(int file) {
    return (int)sendto(file, &byte_, 1, 0, NULL, 0);
}
static int in_sendmsg(int file) {
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    return (int)sendmsg(file, &message, 0);
}
static int in_sendmmsg(int file) {
    struct mmsghdr message = {{.msg_iov = &part, .msg_iovlen = 1}, 0};
    return sendmmsg(file, &message, 1, 0);
}
static int in_accept4(int file) {
    return accept4(file, NULL, NULL, 0);
}
static int in_epoll_pwait(int file) {
    struct epoll_event event;
    return epoll_pwait(file, &event, 1, 1, NULL);
}
static int in_epoll_pwait2(int file) {
    struct epoll_event event;
    return epoll_pwait2(file, &event, 1, &small, NULL);
}
static int in_epoll_pwait2_by_number(int file) {
    struct epoll_event event;
    return (int)syscall(441, file, &event, 1, &small, NULL, 0);
}
static void start_timer(int file) {
    const struct itimerspec once = {.it_value = small};
    timerfd_settime(file, 0, &once, NULL);
}
static int in_read(int file) {
    uint64_t expiries;
    start_timer(file);
    return (int)read(file, &expiries, sizeof expiries);
}
static int in_readv(int file) {
    uint64_t expiries;
    const struct iovec parts = {&expiries, sizeof expiries};
    start_timer(file);
    return (int)readv(file, &parts, 1);
}
static int in_usleep(int unused) {
    (void)unused;
    return usleep(WAIT_NANO / 1000);
}
static int in_thrd_sleep(int unused) {
    (void)unused;
    return thrd_sleep(&small, NULL) == -1 ? returned(EINTR) : 0;
}
static int in_sem_clockwait(int unused) {
    const struct timespec until = in(CLOCK_MONOTONIC);
    sem_t semaphore;
    (void)unused;
    sem_init(&semaphore, 0, 0);
    return sem_clockwait(&semaphore, CLOCK_MONOTONIC, &until);
}
static int in_pthread_cond_clockwait(int unused) {
    const struct timespec until = in(CLOCK_MONOTONIC);
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
    (void)unused;
    pthread_mutex_lock(&mutex);
    const int error = pthread_cond_clockwait(&cond, &mutex, CLOCK_MONOTONIC, &until);
    pthread_mutex_unlock(&mutex);
    return returned(error);
}
static int in_cnd_timedwait(int unused) {
    const struct timespec until = in(CLOCK_REALTIME);
    cnd_t cond;
    mtx_t mutex;
    (void)unused;
    cnd_init(&cond);
    mtx_init(&mutex, mtx_timed);
    mtx_lock(&mutex);
    const int result = cnd_timedwait(&cond, &mutex, &until);
    mtx_unlock(&mutex);
    return result == thrd_error ? returned(EINTR) : 0;
}
static int in_mq_timedsend(int queue) {
    const struct timespec until = in(CLOCK_REALTIME);
    return mq_timedsend(queue, &byte_, 1, 0, &until);
}

#define CALL(name, make)                                                                           \
    { #name, in_##name, make, 0, 0 }
static struct call {
    const char *name;
    int (*wait)(int);
    int (*make)(void);
    int waits;
    int interrupted;
} calls[] = {
    CALL(recvfrom, empty),     CALL(recvmsg, empty),
    CALL(recvmmsg, empty),     CALL(sendto, full),
    CALL(sendmsg, full),       CALL(sendmmsg, full),
    CALL(accept4, listener),   CALL(epoll_pwait, epoll),
    CALL(epoll_pwait2, epoll), CALL(epoll_pwait2_by_number, epoll),
    CALL(usleep, NULL),        CALL(thrd_sleep, NULL),
    CALL(sem_clockwait, NULL), CALL(pthread_cond_clockwait, NULL),
    CALL(cnd_timedwait, NULL), CALL(mq_timedsend, full_queue),
    CALL(read, timer),         CALL(readv, timer),
};
enum { CALLS = sizeof calls / sizeof *calls };

static void *wait_often(void *argument) {
    struct call *const call = argument;
    const int file = call->make ? call->make() : -1;
    while (!atomic_load(&over)) {
        WORK_FOR(WORK_NANO);
        errno = 0;
        const int result = call->wait(file);
        call->waits++;
        call->interrupted += result < 0 && errno == EINTR;
    }
    return NULL;
}

int main(int argc, char **argv) {
    pthread_t threads[CALLS];
    for (int i = 0; i < CALLS; i++)
        pthread_create(&threads[i], NULL, wait_often, &calls[i]);
    sleep(argc > 1 ? (unsigned)atoi(argv[1]) : 1);
    atomic_store(&over, true);
    for (int i = 0; i < CALLS; i++) {
        pthread_join(threads[i], NULL);
        printf("%s: %s, %d interrupted\n", calls[i].name, calls[i].waits ? "waited" : "never",
               calls[i].interrupted);
    }
    return 0;
}
