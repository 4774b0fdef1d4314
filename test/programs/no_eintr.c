/* Threads blocked in calls that no SA_RESTART covers, beside threads that burn CPU: prints how many
 * of the calls came back with EINTR. Idle threads use no CPU, so the profiler owes them none. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { WAIT_MS = 900, TURNS = 2 };

static atomic_int interrupted;
static volatile uint64_t sink;
static int quiet_pipe[2];

static void note(int result) {
    if (result < 0 && errno == EINTR)
        atomic_fetch_add(&interrupted, 1);
}

static void wait_in_poll(void) {
    struct pollfd fd = {.fd = quiet_pipe[0], .events = POLLIN};
    note(poll(&fd, 1, WAIT_MS));
}

static void wait_in_nanosleep(void) {
    const struct timespec t = {0, WAIT_MS * 1000000L};
    note(nanosleep(&t, NULL));
}

static void wait_in_epoll(void) {
    struct epoll_event event;
    const int fd = epoll_create1(0);
    note(epoll_wait(fd, &event, 1, WAIT_MS));
    close(fd);
}

static void wait_in_semaphore(void) {
    sem_t semaphore;
    struct timespec t;
    sem_init(&semaphore, 0, 0);
    clock_gettime(CLOCK_REALTIME, &t);
    t.tv_sec += 1;
    note(sem_timedwait(&semaphore, &t));
}

static void wait_in_select(void) {
    struct timeval t = {0, WAIT_MS * 1000L};
    note(select(0, NULL, NULL, NULL, &t));
}

static void wait_in_recv(void) {
    int pair[2];
    char byte;
    const struct timeval t = {0, WAIT_MS * 1000L};
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0)
        return;
    setsockopt(pair[0], SOL_SOCKET, SO_RCVTIMEO, &t, sizeof t);
    note((int)recv(pair[0], &byte, 1, 0));
    close(pair[0]);
    close(pair[1]);
}

typedef void wait_function(void);
static wait_function *const waits[] = {wait_in_poll,      wait_in_nanosleep, wait_in_epoll,
                                       wait_in_semaphore, wait_in_select,    wait_in_recv};
enum { WAITS = sizeof waits / sizeof *waits };

static void *wait_often(void *arg) {
    wait_function *const *const wait = arg;
    for (int i = 0; i < TURNS; i++)
        (*wait)();
    return NULL;
}

static void *burn(void *unused) {
    struct timespec start;
    struct timespec now;
    (void)unused;
    clock_gettime(CLOCK_MONOTONIC, &start);
    do {
        for (int i = 0; i < 100000; i++)
            sink += (uint64_t)i;
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while (now.tv_sec - start.tv_sec < 2);
    return NULL;
}

int main(void) {
    pthread_t threads[WAITS + 1];
    if (pipe(quiet_pipe) != 0)
        return 1;
    for (int i = 0; i < WAITS; i++)
        pthread_create(&threads[i], NULL, wait_often, (void *)(uintptr_t)&waits[i]);
    pthread_create(&threads[WAITS], NULL, burn, NULL);
    for (int i = 0; i <= WAITS; i++)
        pthread_join(threads[i], NULL);
    printf("interrupted: %d\n", atomic_load(&interrupted));
    return 0;
}
